"""What is said of one thing in full: a request's life, a core at a moment, a finding's group."""
