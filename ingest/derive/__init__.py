"""Plain functions from frames to frames: what a trace implies but does not say."""
