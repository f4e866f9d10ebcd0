"""The details beside the timeline: what is marked or selected, or the trace itself."""

from __future__ import annotations

from collections.abc import Iterator

from dash import html
from dash.development.base_component import Component

from stepscope.app.present.about import identity, told_of_it
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Title, Tone
from stepscope.app.present.where import of_rank
from stepscope.app.units import count
from stepscope.app.web.components import components
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.resolve import Resolved


def about(loaded: LoadedTrace, resolved: Resolved) -> list[Component]:
    """What is said about the range, finding or span that is selected, or how to select one."""
    timeline = loaded.coloured(resolved.view)
    selected = loaded.describe(resolved.selection, timeline)
    if not selected:
        return components(loaded.about() or _trace(loaded))
    return components(selected, [html.Button("copy link", id="copy", type="button")])


def _trace(loaded: LoadedTrace) -> Iterator[Block]:
    yield Title(loaded.trace.name)
    yield from (Fact(name, (text,)) for name, text in identity(loaded.trace))
    yield Fact("steps", (f"{count(len(loaded.composition))}{of_rank(loaded.composition)}",))
    checked = loaded.result
    for code, number in checked.counts.items() if checked else ():
        if number:
            yield Fact(code, (count(number),))
    yield Heading("where to begin")
    if loaded.findings:
        yield Paragraph("Press n for the next finding, or click one below.")
    yield Paragraph("Drag to move, wheel to zoom, click a span to read it, ? for all keys.")
    yield from told_of_it(loaded.trace)
    if checked and checked.not_applicable:
        yield Heading("not applicable")
        yield Paragraph(f"{checked.coverage.share}.")
        yield Paragraph(" ".join(checked.not_applicable), Tone.MUTED)
