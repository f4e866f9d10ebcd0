"""Numbers as they are written in text: with a fraction, an exponent, in quotes."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,18})?", re.ASCII)


def exact(text: str) -> Decimal | None:
    """The number that is written in `text`, exactly; None where it is none, as `nan` or `0x10`."""
    stripped = text.strip()
    return Decimal(stripped) if _NUMBER.fullmatch(stripped) else None


def whole_below(text: str, limit: int) -> int | None:
    """The whole number from 0 on that is written in `text`, as `5`, `5.0` or `0.5e1`."""
    number = exact(text)
    if number is None or not 0 <= number < limit:
        return None
    return int(number) if number == int(number) else None
