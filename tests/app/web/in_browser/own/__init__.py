"""The page as a user makes it their own: flags that they put, traces that they open from it."""
