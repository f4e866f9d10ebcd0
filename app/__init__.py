"""What people touch: command line, debug sessions, timeline, terminal and web."""
