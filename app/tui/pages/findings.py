"""All findings in a table, and everything about the one under the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.timeline.navigator import Selection
from stepscope.app.tui.actions import SCROLLS, actions
from stepscope.app.tui.pages.finding_rows import FindingRows
from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.app.tui.widgets.table import Table

KEYS = (
    *actions(
        ("move(1)", "j,down", "j", "next row", "row"),
        ("move(-1)", "k,up", "k", "previous row", "row"),
        ("page_move(1)", "space", "space", "a page down"),
        ("page_move(-1)", "b", "b", "a page up"),
        ("edge(0)", "g,home", "g", "first row"),
        ("edge(-1)", "G,end", "G", "last row"),
        ("jump", "enter", "enter", "go to it in the timeline", "go to it"),
        ("explain", "e", "e", "the rule's page", "explain"),
    ),
    *SCROLLS,
)


class FindingsPage(Page):
    """A table of findings with details beside or below."""

    ACTIONS = KEYS
    SCOPED_CSS = False
    DEFAULT_CSS = """
    FindingsPage { layout: horizontal; }
    #all-findings { width: 1fr; height: 100%; }
    #finding { width: 56; height: 100%; border-left: solid $border; }
    .-narrow FindingsPage { layout: vertical; }
    .-narrow #all-findings { width: 100%; height: 8; }
    .-narrow #finding { width: 100%; height: 1fr; border-left: none; border-top: solid $border; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.opened: Opened | None = None
        self._findings: Sequence[Finding] | None = None

    def compose(self) -> ComposeResult:
        """Lay out table and details."""
        yield Table(id="all-findings")
        yield Details(id="finding")

    @property
    def table(self) -> Table:
        """The table of findings."""
        return self.query_one(Table)

    def show(self, opened: Opened) -> None:
        """Show the findings, the current one under the cursor."""
        self.opened, state = opened, opened.view
        if self._findings is not state.findings or not len(self.table.rows):
            self._findings = state.findings
            self.table.show(FindingRows(state))
        if state.findings:
            self._point_at(state.finding or 0)

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        self.table.move(by)
        self._describe()

    def action_page_move(self, pages: int) -> None:
        """Move the cursor by screenfuls."""
        self.action_move(pages * self.table.page)

    def action_edge(self, index: int) -> None:
        """Move to the first or the last row."""
        if len(self.table.rows):
            self._point_at(index % len(self.table.rows))

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one("#finding").scroll_relative(y=lines, animate=False)

    def action_jump(self) -> None:
        """Go to the finding in the timeline."""
        if self.table.cursor is not None:
            self.post_message(self.FindingChosen(self.table.cursor))

    async def action_explain(self) -> None:
        """Open the page of the finding's rule."""
        if found := self._found():
            await self.run_action(f"app.explain('{found.code}')")

    @on(Table.Chosen)
    def _choose(self, event: Table.Chosen) -> None:
        self._describe()
        if event.again:
            self.action_jump()

    def _point_at(self, index: int) -> None:
        self.table.point_at(index)
        self._describe()

    def _describe(self) -> None:
        if self.opened and (found := self._found()):
            timeline, trace = self.opened.view.timeline, self.opened.trace
            self.query_one(Details).look_up(Selection(finding=found), timeline, trace)

    def _found(self) -> Finding | None:
        """The finding under the cursor."""
        if self._findings and self.table.cursor is not None:
            return self._findings[self.table.cursor]
        return None
