"""The base of everything that scrolls lines of its own."""

from __future__ import annotations

from textual.scroll_view import ScrollView


class Scrolling(ScrollView, can_focus=False):
    """Paints lines that scroll up and down; keys go to the page that it stands on."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Scrolling {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 0;
    }
    """

    @property
    def room(self) -> int:
        """Cells of a line, without the scrollbar; its place is kept free when it is not there."""
        return max(self.scrollable_content_region.width, 1)
