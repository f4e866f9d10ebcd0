"""What packets say: one by one as messages, or many plain ones at once, in columns."""
