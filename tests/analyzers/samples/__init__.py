"""What rules say of recordings that the project made, against counts in plain Python."""
