"""How far a query may go: how much its joins may make, and a process that can be stopped."""
