"""Core groups and the scheduler that dispatches task graphs on them."""
