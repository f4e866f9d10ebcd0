"""Whole numbers as people write them, of which a table can have rows."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"-?[0-9]{1,18}")


def whole_number(text: str) -> int | None:
    """Read `5` or `-5`; None for whatever else it is, and for more digits than a column holds."""
    text = text.strip()
    return int(text) if _WHOLE.fullmatch(text) else None
