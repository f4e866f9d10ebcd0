"""Following a recording while it is made: what both fronts show of it, and what was found in it."""
