"""What pages have in common that are a table and, beside it, words about the row at the cursor."""

from __future__ import annotations

from abc import abstractmethod

from textual import on

from stepscope.app.tui.actions import Action, actions
from stepscope.app.tui.pages.page import Page
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.tui.widgets.table import Table


def row_actions(row: str, short: str = "row") -> tuple[Action, ...]:
    """The keys that move the cursor; help calls a row `row`, and the footer `short`."""
    return actions(
        ("move(1)", "j,down", "j", f"next {row}", short),
        ("move(-1)", "k,up", "k", f"previous {row}", short),
        ("page_move(1)", "space", "space", "a page down"),
        ("page_move(-1)", "b", "b", "a page up"),
        ("edge(0)", "g,home", "g", f"first {row}"),
        ("edge(-1)", "G,end", "G", f"last {row}"),
    )


class TablePage(Page):
    """A page with one `Table`; a second choice of the same row jumps to what it is about."""

    WORDS = ""
    """The id of the `Prose` beside the table."""

    @property
    def table(self) -> Table:
        """The table."""
        return self.query_one(Table)

    @abstractmethod
    def describe(self) -> None:
        """Say everything about the row at the cursor."""

    @abstractmethod
    def action_jump(self) -> None:
        """Go to what the row at the cursor is about."""

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.table.move(by)
        self.describe()

    def action_page_move(self, pages: int) -> None:
        """Move the cursor by screenfuls."""
        self.action_move(pages * self.table.page)

    def action_edge(self, index: int) -> None:
        """Move to the first or the last row."""
        if len(self.table.rows):
            self.point_at(index % len(self.table.rows))

    def action_scroll(self, lines: int) -> None:
        """Scroll the words."""
        self.query_one(f"#{self.WORDS}", Prose).scroll_relative(y=lines, animate=False)

    def point_at(self, index: int) -> None:
        """Put the cursor on a row."""
        self.table.point_at(index)
        self.describe()

    @on(Table.Chosen)
    def choose(self, event: Table.Chosen) -> None:
        """Describe what was clicked, and go there with the second click."""
        self.describe()
        if event.again:
            self.action_jump()
