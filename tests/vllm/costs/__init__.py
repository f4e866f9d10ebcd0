"""What recording costs a vLLM: two engines in one process, step by step, one of them recorded."""
