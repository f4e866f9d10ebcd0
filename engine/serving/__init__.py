"""The engine itself: its loop, and what alone moves requests, blocks and tokens."""
