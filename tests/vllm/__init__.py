"""What a real vLLM did, held against what its scheduler says of itself: `make test-vllm`."""
