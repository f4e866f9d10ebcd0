"""What a summary says of a run, for whatever the trace is of: a profile, core groups, serving."""
