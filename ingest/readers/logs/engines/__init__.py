"""One file per engine: its lines, and what each says."""
