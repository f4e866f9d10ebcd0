"""What goes through spans once in C; where it was not compiled, NumPy does the same."""

from __future__ import annotations

try:
    from stepscope.app.timeline.spans import _spans
except ImportError:
    _spans = None  # type: ignore[assignment]  # None where it was not compiled

passes = _spans
IS_COMPILED = passes is not None
