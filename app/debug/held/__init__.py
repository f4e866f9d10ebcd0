"""What a rank held at any place in the order of its changes, by the rows of its tables."""
