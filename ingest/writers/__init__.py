"""One writer per file format that others read."""
