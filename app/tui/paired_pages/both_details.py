"""What is selected of two traces, the timeline of both, and what was found in them."""

from __future__ import annotations

from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.paired.selected import told
from stepscope.app.paired.standing import Standing
from stepscope.app.present.blocks import Block
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.tui.pages.findings import FindingsPage as OneFindingsPage
from stepscope.app.tui.pages.timeline import TimelinePage as OneTimelinePage
from stepscope.app.tui.paired_pages.plots import BothAxis, BothMinimap
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.ingest.trace import Trace


class BothDetails(Details):
    """Says of a selection what its own trace has, and what the other has there."""

    standing: Standing | None = None

    def compare(self, standing: Standing) -> None:
        """Say from now on how what is selected stands in these two traces."""
        self.standing = standing
        self.forget()

    def blocks_of(self, selection: Selection, timeline: Timeline, trace: Trace) -> list[Block]:
        """What is said of a selection."""
        del trace
        if self.standing is None or not isinstance(timeline, JoinedTimeline):
            return []
        return told(self.standing.pair, selection, timeline)


class TimelinePage(OneTimelinePage):
    """The lanes of both in turn."""

    MINIMAP, AXIS, DETAILS = BothMinimap, BothAxis, BothDetails


class FindingsPage(OneFindingsPage):
    """The findings of both in one table: each says whose it is, and if only that one has it."""

    DETAILS = BothDetails
