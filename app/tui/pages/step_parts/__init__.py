"""What the step page is made of: its keys, where it stands, what it shows, a value over the run."""
