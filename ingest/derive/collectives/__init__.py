"""Which collectives are one across ranks, and how far the clocks of ranks are apart."""
