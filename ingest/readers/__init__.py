"""One reader per file format, behind one Protocol."""
