"""What both fronts show of a debug session, as neutral blocks."""
