"""What runs a batch, behind one Protocol."""
