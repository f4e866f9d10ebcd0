"""What both fronts show of a session."""
