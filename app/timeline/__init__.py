"""The one timeline model behind the terminal and the web."""
