"""What is installed of vLLM, and what of it could be recorded."""
