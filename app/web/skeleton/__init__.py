"""What stands still on the page of a trace."""
