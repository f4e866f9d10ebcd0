"""How a picture of the timeline goes to the browser."""
