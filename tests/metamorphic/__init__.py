"""Files rewritten so that it is known what may change in what is read, and what may not."""
