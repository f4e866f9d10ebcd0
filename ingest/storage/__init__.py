"""What lies on disk in Parquet: traces that are saved, and what was read of other files."""
