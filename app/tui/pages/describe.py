"""What the details pane says of a selection, or how to select something."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.app.present.blocks import Block, Paragraph, Title, Tone
from stepscope.app.present.details import finding_blocks, range_blocks, span_blocks
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.navigator import Selection
from stepscope.ingest.trace import Trace


def describe(selection: Selection, timeline: Timeline, trace: Trace) -> list[Block]:
    """Blocks for what is selected; how to select something when nothing is.

    Looks rows up in the trace, so call it from a thread.
    """
    if selection.mark:
        return list(range_blocks(*selection.mark, selection.section, timeline))
    if selection.finding:
        return list(finding_blocks(selection.finding, timeline, trace))
    if selection.span:
        return list(span_blocks(selection.span, timeline))
    return list(_nothing())


def _nothing() -> Iterator[Block]:
    yield Title("Nothing selected")
    yield Paragraph("Click a span, or walk along a lane with h and l, between lanes with j and k.")
    yield Paragraph("n goes to the next finding, m marks a range, ? shows every key.", Tone.MUTED)
