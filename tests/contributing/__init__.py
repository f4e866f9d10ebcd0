"""What CONTRIBUTING says of each seam, followed to the letter."""
