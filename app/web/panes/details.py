"""The details beside the timeline: the finding or span that is selected, or the trace itself."""

from __future__ import annotations

from collections.abc import Iterator

from dash import html
from dash.development.base_component import Component

from stepscope.app.present.about import identity
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Title, Tone
from stepscope.app.present.details import finding_blocks, span_blocks
from stepscope.app.units import count
from stepscope.app.web.components import components
from stepscope.app.web.resolve import Resolved
from stepscope.app.web.scene import Scene


def about(scene: Scene, resolved: Resolved) -> list[Component]:
    """What is said about the finding or the span that is selected, or how to select one."""
    copy = [html.Button("copy link", id="copy", type="button")]
    if resolved.view.finding:
        found = scene.findings[resolved.view.finding]
        return components(finding_blocks(found, scene.timeline, scene.trace), copy)
    if resolved.span:
        return components(span_blocks(resolved.span, scene.timeline), copy)
    return components(_trace(scene))


def _trace(scene: Scene) -> Iterator[Block]:
    yield Title(scene.trace.name)
    yield from (Fact(name, (text,)) for name, text in identity(scene.trace))
    yield Fact("steps", (count(len(scene.composition)),))
    for code, number in scene.result.counts.items():
        if number:
            yield Fact(code, (count(number),))
    if scene.result.not_applicable:
        yield Heading("not applicable")
        yield Paragraph(f"{scene.result.coverage.share}.")
        yield Paragraph(" ".join(scene.result.not_applicable), Tone.MUTED)
    yield Heading("where to begin")
    yield Paragraph("Press n for the next finding, or click one below.")
    yield Paragraph("Drag to move, wheel to zoom, click a span to read it, ? for all keys.")
