"""Batches on the decoder: it computes their tokens, and can be profiled doing so."""
