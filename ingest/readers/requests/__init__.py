"""Published lists of requests: each line an arrival."""
