"""Following a recording: what is kept of it, and what was found so far."""
