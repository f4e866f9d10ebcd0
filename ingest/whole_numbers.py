"""Numbers that stand in texts, as the id of a task or a rank in a decision's subject does."""

from __future__ import annotations

MOST_DIGITS = 18
"""What is longer is no int64; Python refuses to read more than 4,300 digits at all."""


def whole_number(text: str) -> int | None:
    """The number that a text is; None of anything but up to 18 digits, as whoever wrote an id did.

    Digits of other scripts are none: `int` reads some, `str.isdigit` says it of more.
    """
    is_number = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
    return int(text) if is_number else None
