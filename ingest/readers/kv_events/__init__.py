"""Captured KV cache events, as vLLM and SGLang publish them."""
