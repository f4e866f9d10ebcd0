"""What is installed of an engine, and what of it could be recorded."""
