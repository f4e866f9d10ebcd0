"""Text of a trace as an assistant may be given it: data on one line, whose ends cannot be forged.

A name in a trace is whatever somebody sent as a request id. It may hold terminal control, text that
runs backwards, markup, or sentences that read like an order. The first three are shown as what they
are; of the last nothing can be taken away, so all of it stands where only data stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from stepscope.app.printable import plain

MOST_CHARS = 300
"""Of a text: a longer one is cut, and says how long it is."""
MOST_EXACT = 1 << 53
"""Beyond it JSON's readers round whole numbers, so they are given as texts."""
_MARKUP = str.maketrans("<>`", "\u2039\u203a\u02cb")
"""What begins markup, and characters that look like it and begin none."""
MARKED = "\u2039 \u203a \u02cb"


def marked(text: str, most: int = MOST_CHARS) -> str:
    """A text of a trace on one line, at most so long.

    What steers a terminal is `·`; what begins markup is a character that looks like it and does
    not. A text without either is as it was, so that it can be given back in a question.
    """
    shown = plain(text[: most + 1]).translate(_MARKUP).replace("](", "] (")
    return shown if len(text) <= most else f"{shown[:most]}… ({len(text):,} characters)"


def is_cut(text: str, most: int = MOST_CHARS) -> bool:
    """Whether `marked` cuts it."""
    return len(text) > most


def named_as(shown: str, names: Iterable[str]) -> str:
    """The name that an assistant was shown as `shown`, which is what it gives back.

    A name that is told as it is goes first; where none is shown so, it is given back as it came.
    """
    alike = [name for name in names if marked(name) == shown]
    return shown if shown in alike or not alike else alike[0]


def _is_exact(number: float) -> bool:
    """Whether JSON has the number, and every reader of it the same."""
    if isinstance(number, int):
        return -MOST_EXACT <= number <= MOST_EXACT
    return math.isfinite(number)


class Bounded:
    """Makes values of a trace what JSON holds, at most so much of each, and counts what it cut."""

    def __init__(self, chars: int = MOST_CHARS, values: int = 60) -> None:
        """Cut texts behind so many characters, lists and mappings behind so many values."""
        self.chars, self.values = chars, values
        self.num_cut_texts = self.num_cut_lists = 0

    def of(self, value: Any) -> Any:
        """The value, as deep as it goes."""
        match value:
            case None | bool():
                return value
            case int() | float():
                return value if _is_exact(value) else str(value)
            case Mapping():
                return {self._text(str(name)): self.of(each) for name, each in self._few(value)}
            case list() | tuple():
                return [self.of(each) for _, each in self._few(dict(enumerate(value)))]
            case _:
                return self._text(str(value))

    def _few(self, value: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        kept = list(islice(value.items(), self.values))
        self.num_cut_lists += len(kept) < len(value)
        return kept

    def _text(self, text: str) -> str:
        self.num_cut_texts += is_cut(text, self.chars)
        return marked(text, self.chars)
