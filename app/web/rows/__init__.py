"""Rows of a frame on the page: as an HTML table, with links from what they name."""
