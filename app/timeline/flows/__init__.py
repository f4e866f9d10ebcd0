"""What led to what: launches, dependencies, preemptions, arrows, and the path to a span."""
