"""What is said of spans: arrows and paths between them, and what those of an area add up to."""
