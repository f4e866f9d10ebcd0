"""What a text of blocks is made of: its tables, and what a click in it runs."""
