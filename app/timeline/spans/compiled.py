"""What goes through spans once in C; where it was not compiled, NumPy does the same."""

from __future__ import annotations

try:
    from stepscope.app.timeline.spans import _pixels, _spans
except ImportError:
    _pixels = _spans = None  # type: ignore[assignment]  # None where they were not compiled

passes, pictures = _spans, _pixels
IS_COMPILED = passes is not None
