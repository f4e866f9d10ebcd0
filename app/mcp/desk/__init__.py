"""What tools work with: folders that may be read, traces that are open, one answer at a time."""
