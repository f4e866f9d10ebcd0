"""Places in a trace: how they are written, and those that were given a name."""
