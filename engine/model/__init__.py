"""A tiny decoder with real weights, real attention and a real paged KV; needs torch."""
