"""What a decoder remembers of each request, and where a forward pass finds it."""
