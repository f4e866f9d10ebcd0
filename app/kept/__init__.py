"""What is kept of a reader's own in the user's folder for states: a trace is never written to."""
