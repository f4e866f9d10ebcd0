"""What opens over a page: help, search, the page of a rule."""
