"""The pane that says what is selected; it looks rows up in a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual import work
from textual.message import Message

from stepscope.app.present.blocks import Block, Paragraph, Title, Tone
from stepscope.app.present.details import selection_blocks
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.timeline.flows.outlines import Outline, outlines
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

    @dataclass
    class Outlined(Message):
        """What belongs to a selection on the lanes was looked up."""

        outlines: Sequence[Outline]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._latest: Latest[Query] = Latest(self._describe)
        self._asked: Query | None = None

    def look_up(self, selection: Selection, timeline: Timeline, trace: Trace) -> None:
        """Describe a selection, unless it is what was asked last; of several in a row, the last."""
        query = selection, timeline, trace
        if query != self._asked:
            self._asked = query
            self._latest.ask(query)

    def forget(self) -> None:
        """Describe even the same selection again: what is said of it has changed."""
        self._asked = None

    @work(thread=True)
    def _describe(self, query: Query) -> None:
        self.post_message(self.Described(self.blocks_of(*query) or [*_nothing()]))
        selection, timeline, _ = query
        self.post_message(self.Outlined(outlines(selection, timeline)))

    def blocks_of(self, selection: Selection, timeline: Timeline, trace: Trace) -> list[Block]:
        """What is said of a selection."""
        return selection_blocks(selection, timeline, trace)

    def on_details_described(self, event: Described) -> None:
        """Show what was found, unless something else is wanted by now."""
        event.stop()
        if self._latest.is_wanted():
            self.show(event.blocks)


def _nothing() -> Iterator[Block]:
    yield Title("Nothing selected")
    yield Paragraph("Click a span, or walk along a lane with h and l, between lanes with j and k.")
    yield Paragraph("Of a request that waits, its span says why.")
    yield Paragraph("n goes to the next finding, m marks a range, ? shows every key.", Tone.MUTED)
