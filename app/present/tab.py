"""What names a page of the terminal or a pane of the page: all that users see of it follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DIGITS = {
    "overview": "1", "timeline": "2", "findings": "3", "step": "4", "blame": "5", "request": "6",
    "area": "7", "sql": "8", "table": "9",
}  # fmt: skip
"""The key of each page and pane: the same in the terminal and on the page."""
FREE = ("9", "K", "J", "Q", "I", "E")
"""Keys for pages and panes that are added, in the order in which they are given out."""


@dataclass(frozen=True, slots=True)
class Tab:
    """A page or a pane by its name, and what the help `says` of it.

    The name is the one that stands in an address and that its module has; `title` is what its tab
    shows, where that is not the name with a capital, and `key` the one that opens it, where that is
    not its digit.
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
    """Each tab with the key that opens it: its own, its digit, or one that is free."""
    keys = [tab.key or DIGITS.get(tab.name, "") for tab in tabs]
    free = (key for key in FREE if key not in keys)
    return [(key or next(free), tab) for key, tab in zip(keys, tabs, strict=True)]
