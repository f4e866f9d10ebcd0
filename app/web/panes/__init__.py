"""The panes of the page: what its tabs show, and the details beside them."""
