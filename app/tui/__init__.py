"""The terminal front: the timeline, findings, overview and step detail of a trace."""

import os

# What a key changes is drawn in two frames, and Textual waits up to a period for each: 17 ms at its
# own 60 frames a second. It draws nothing where nothing changes.
os.environ.setdefault("TEXTUAL_FPS", "480")
