"""How an engine that we did not write is recorded: adapters, and what they have in common."""
