"""One scheduling policy per file."""
