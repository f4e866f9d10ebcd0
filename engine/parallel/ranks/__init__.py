"""The members of a group: head and workers, as threads or processes."""
