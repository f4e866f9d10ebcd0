"""Two traces side by side: how their times and lanes lie on each other, and what differs."""
