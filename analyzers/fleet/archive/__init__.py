"""The archive of a fleet: hive-partitioned Parquet, and a journal of what is not in it yet."""
