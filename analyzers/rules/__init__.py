"""One rule per file; the file's docstring is the rule's page."""
