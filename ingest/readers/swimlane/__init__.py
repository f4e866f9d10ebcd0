"""Core-group swimlanes: what the simpler runtime writes about a run on a device."""
