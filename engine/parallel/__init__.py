"""Expert parallelism: a head and workers, the protocol between them, and what carries it."""
