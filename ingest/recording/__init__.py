"""How a recorder gets rows to disk, and how they are found again after a crash."""
