"""The spans of a section in few bytes, at every zoom: how they are packed, and kept on disk."""
