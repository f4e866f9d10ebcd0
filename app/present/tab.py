"""What names a page of the terminal or a pane of the page: all that users see of it follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tab:
    """A page or a pane by its name, and what the help `says` of it.

    The name is the one that stands in an address and that its module has; `title` is what its tab
    shows, where that is not the name with a capital.
    """

    name: str
    says: str
    title: str = ""

    @property
    def label(self) -> str:
        """What stands on the tab."""
        return self.title or self.name.capitalize()


def numbered(tabs: Sequence[Tab]) -> list[tuple[str, Tab]]:
    """Each tab with the key that opens it: the digit of its place."""
    return [(str(place), tab) for place, tab in enumerate(tabs, 1)]
