"""Chrome JSON: the trace events of torch.profiler and of whatever else writes them."""
