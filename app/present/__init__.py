"""What is said of a trace, in words: each thing once, for the terminal, the page and plain text."""
