"""All rules: a folder a family, a file a rule; families know nothing of each other."""
