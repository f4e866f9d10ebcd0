"""The pane that says what is selected; it looks rows up in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import work
from textual.message import Message

from stepscope.app.present.blocks import Block
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.navigator import Selection
from stepscope.app.tui.pages.describe import describe
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.prose import Prose
from stepscope.ingest.trace import Trace

Query = tuple[Selection, Timeline, Trace]


class Details(Prose):
    """Shows the blocks that describe a selection."""

    @dataclass
    class Described(Message):
        """A selection was looked up."""

        blocks: Sequence[Block]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._latest: Latest[Query] = Latest(self._describe)

    def look_up(self, selection: Selection, timeline: Timeline, trace: Trace) -> None:
        """Describe a selection; of several in a row, the last one."""
        self._latest.ask((selection, timeline, trace))

    @work(thread=True)
    def _describe(self, query: Query) -> None:
        self.post_message(self.Described(describe(*query)))

    def on_details_described(self, event: Described) -> None:
        """Show what was found, unless something else is wanted by now."""
        event.stop()
        if self._latest.is_wanted():
            self.show(event.blocks)
