"""A check of a trace: all rules, which of them could judge, and what is known of already."""
