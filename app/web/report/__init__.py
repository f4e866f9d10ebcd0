"""A report: one page that holds a trace, what was found in it and its timeline, to send on."""
