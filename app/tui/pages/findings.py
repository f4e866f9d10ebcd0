"""All findings in a table, and everything about the one under the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.kept.flags import Flag
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.timeline.flags.flag_at import lane_key
from stepscope.app.tui.actions import SCROLLS, actions
from stepscope.app.tui.pages.finding_rows import FindingRows
from stepscope.app.tui.pages.page import Opened
from stepscope.app.tui.pages.table_page import TablePage, row_actions
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.app.tui.widgets.table import Table

KEYS = (
    *row_actions("row"),
    *actions(
        ("jump", "enter", "enter", "go to it in the timeline", "go to it"),
        ("explain", "e", "e", "the rule's page", "explain"),
    ),
    *SCROLLS,
)


class FindingsPage(TablePage):
    """A table of findings with details beside or below."""

    ACTIONS = KEYS
    WORDS = "finding"
    DETAILS = Details
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
        yield self.DETAILS(id="finding")

    def show(self, opened: Opened) -> None:
        """Show the findings, the current one under the cursor."""
        self.opened, state = opened, opened.view
        if self._findings is not state.findings or not len(self.table.rows):
            self._findings = state.findings
            self.table.show(FindingRows(state))
        if state.findings:
            self.point_at(state.finding or 0)

    def flag_place(self, opened: Opened) -> Flag:
        """When the finding under the cursor is, in its lane."""
        found, timeline = self._found(), opened.view.timeline
        if found is None or found.ts_ns is None:
            return super().flag_place(opened)
        lane = timeline.lane_of(found)
        return Flag(found.ts_ns, lane=None if lane is None else lane_key(timeline.lanes[lane]))

    def action_jump(self) -> None:
        """Go to the finding in the timeline."""
        if self.table.cursor is not None:
            self.post_message(self.FindingChosen(self.table.cursor))

    async def action_explain(self) -> None:
        """Open the page of the finding's rule."""
        if found := self._found():
            await self.run_action(f"app.explain('{found.code}')")

    def describe(self) -> None:
        """Say everything about the finding at the cursor."""
        if self.opened and (found := self._found()):
            timeline, trace = self.opened.view.timeline, self.opened.trace
            self.query_one(Details).look_up(Selection(finding=found), timeline, trace)

    def _found(self) -> Finding | None:
        """The finding under the cursor."""
        if self._findings and self.table.cursor is not None:
            return self._findings[self.table.cursor]
        return None
