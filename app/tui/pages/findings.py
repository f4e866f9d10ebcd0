"""All findings in a table, and everything about the one under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.tui.actions import bindings
from stepscope.app.tui.pages.finding_rows import FindingRows
from stepscope.app.tui.view_state import Selection, ViewState
from stepscope.app.tui.widgets.details import Details
from stepscope.app.tui.widgets.table import Table
from stepscope.ingest.trace import Trace


class FindingsPage(Horizontal, can_focus=True):
    """A table of findings with details beside or below."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("findings")]

    class Opened(Message):
        """The finding of a row is to be shown in the timeline."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, trace: Trace, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.trace = trace
        self.state: ViewState | None = None
        self._findings: Sequence[Finding] | None = None

    def compose(self) -> ComposeResult:
        """Lay out table and details."""
        yield Table(id="all-findings")
        yield Details(id="finding")

    @property
    def table(self) -> Table:
        """The table of findings."""
        return self.query_one(Table)

    def show(self, state: ViewState) -> None:
        """Show the findings of a state, its current one under the cursor."""
        self.state = state
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
            self.post_message(self.Opened(self.table.cursor))

    async def action_explain(self) -> None:
        """Open the page of the finding's rule."""
        if self.state and self.state.findings and self.table.cursor is not None:
            code = self.state.findings[self.table.cursor].code
            await self.run_action(f"app.explain('{code}')")

    @on(Table.Chosen)
    def _choose(self, event: Table.Chosen) -> None:
        self._describe()
        if event.again:
            self.action_jump()

    def _point_at(self, index: int) -> None:
        self.table.point_at(index)
        self._describe()

    def _describe(self) -> None:
        if self.state and self.state.findings and self.table.cursor is not None:
            found = self.state.findings[self.table.cursor]
            self.query_one(Details).look_up(
                Selection(finding=found), self.state.timeline, self.trace
            )
