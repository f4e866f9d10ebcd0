"""A mixed batch as two segments, and how the metadata of each gets to the device."""
