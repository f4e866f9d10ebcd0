"""How a scenario is run: on which engine, clock and ranks, and what came of it."""
