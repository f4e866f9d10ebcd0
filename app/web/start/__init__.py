"""The page from which a trace is opened: recent ones, a path, a file that is dropped on it."""
