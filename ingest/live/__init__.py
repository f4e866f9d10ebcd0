"""What engines publish while they run: listened to, captured, and read as a trace."""
