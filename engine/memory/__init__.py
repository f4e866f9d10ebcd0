"""What requests hold: KV blocks, slots, and the bytes of these."""
