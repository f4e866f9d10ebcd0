"""The terminal front (Textual)."""
