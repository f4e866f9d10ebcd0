"""Whether the state that rows add up to is the one that was."""
