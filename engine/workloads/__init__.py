"""What an engine is given: requests and task graphs, made up or read from files."""
