"""Where the time of requests went, by cause."""
