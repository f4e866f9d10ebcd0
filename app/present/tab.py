"""What names a page of the terminal or a pane of the page: all that users see of it follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count


@dataclass(frozen=True, slots=True)
class Tab:
    """A page or a pane by its name, and what the help `says` of it.

    The name is the one that stands in an address and that its module has; `title` is what its tab
    shows, where that is not the name with a capital, and `key` the one that opens it, where that is
    no digit.
    """

    name: str
    says: str
    title: str = ""
    key: str = ""

    @property
    def label(self) -> str:
        """What stands on the tab."""
        return self.title or self.name.capitalize()


def numbered(tabs: Sequence[Tab]) -> list[tuple[str, Tab]]:
    """Each tab with the key that opens it: its own, or a digit in the order of their places."""
    digits = count(1)
    return [(tab.key or str(next(digits)), tab) for tab in tabs]
