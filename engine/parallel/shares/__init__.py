"""What each rank computes: its share of the model, and the buffers that it shares."""
