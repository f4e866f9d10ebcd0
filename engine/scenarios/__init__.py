"""One scenario per file; the file's docstring is the scenario's page."""
