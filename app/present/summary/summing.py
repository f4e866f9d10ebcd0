"""Whatever a trace is of, summed up: the parts that fit what is there, and never none."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analyzers.latency.blame import Blame
from stepscope.analyzers.summary.slo import Slo
from stepscope.analyzers.views.partial import partial
from stepscope.app.present.blocks import Heading, Items, Paragraph, Tone
from stepscope.app.present.summary.core_words import core_parts
from stepscope.app.present.summary.parts import Part, Summary
from stepscope.app.present.summary.profile import profile_parts, step_parts
from stepscope.app.present.summary.serving import serving_parts
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

FITS = (
    "A summary is made of requests (lifecycle, batch_rows), of what GPUs executed (spans), of core "
    "groups (core_spans), or of steps."
)


def summary(trace: Trace, blamed: Blame, slo: Slo | None = None) -> Summary:
    """Sum a trace up; `blamed` is its blame. Reads rows, so a front calls it from a thread."""
    parts = (
        *_partial_parts(trace),
        *serving_parts(trace, blamed, slo),
        *profile_parts(trace),
        *core_parts(trace),
        *step_parts(trace),
    )
    return Summary(parts or (_nothing(trace),))


def _partial_parts(trace: Trace) -> Iterator[Part]:
    """The gaps of a partial recording."""
    if lines := partial(trace):
        yield Part((Heading("partial", "figures cover only what was recorded"), Items(lines)))


def _nothing(trace: Trace) -> Part:
    has = [table.name for table in TABLES if trace.has(table.name)]
    there = f"This trace has rows of {', '.join(has)} alone." if has else "This trace has no rows."
    return Part((Heading("summary"), Paragraph(there), Paragraph(FITS, Tone.MUTED)))
