"""Who may look at a page, and how much one request may ask of it."""
