"""What a decoder's layers compute: attention, experts, and a state of fixed size."""
