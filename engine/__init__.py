"""The reference engine: makes traces with known truth."""
