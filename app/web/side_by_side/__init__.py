"""The page over two traces: what it looks at, and its panes."""
