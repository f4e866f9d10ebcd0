"""What is kept of a reader's own."""
