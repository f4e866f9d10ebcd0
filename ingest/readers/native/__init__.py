"""The `.trace` directory that the recorder writes."""
