"""What lies in an area, some lanes over a range of time: its spans, and what they add up to."""
