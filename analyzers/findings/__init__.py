"""What a rule is, and what it says."""
