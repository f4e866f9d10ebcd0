"""The details beside the timeline: what is marked or selected, or the trace itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.wording import times
from stepscope.app.palette import SEVERITY_MARKS, WAITS
from stepscope.app.present.about import identity, told_of_it
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph
from stepscope.app.present.silent_rules import silent_rules
from stepscope.app.present.where import num_steps
from stepscope.app.printable import plain
from stepscope.app.units import count
from stepscope.app.web.components import components
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.resolve import Resolved

ON_A_LINE = 32
"""Letters of a name for which there is room in a line."""


def about(loaded: LoadedTrace, resolved: Resolved) -> list[Component]:
    """What is said about the range, finding or span that is selected, or how to select one."""
    timeline = loaded.coloured(resolved.view)
    selected = loaded.describe(resolved.selection, timeline)
    if not selected:
        return components(told) if (told := loaded.about()) else _about_trace(loaded)
    return components(selected, [html.Button("copy link", id="copy", type="button")])


def _about_trace(loaded: LoadedTrace) -> list[Component]:
    told = [html.H2(_breakable(loaded.trace.name)), *components(_trace(loaded))]
    if loaded.result:
        told += _silent(loaded.result)
    return told


def _breakable(name: str) -> list[str | Component]:
    """A file's name that goes on in the next line behind what joins its words, where it is long."""
    shown = plain(name)
    if len(shown) <= ON_A_LINE:
        return [shown]
    words = re.findall(r"[^_.-]*[_.-]+|[^_.-]+", shown)
    return [part for word in words for part in (word, html.Wbr())][:-1]


def _silent(checked: CheckResult) -> Iterator[Component]:
    """Rules that found nothing, and rules that could not judge: their codes on a click."""
    for rules in silent_rules(checked):
        yield html.H3(rules.label)
        if checked.not_applicable and rules.codes == tuple(checked.not_applicable):
            yield html.P(f"{checked.coverage.share}.")
        summary = html.Summary(f"{times(len(rules.codes), 'rule')}: {rules.by_family}")
        codes = html.P(" ".join(rules.codes), className="muted")
        yield html.Details([summary, codes], open=False, className="codes")


def _found(checked: CheckResult) -> Iterator[Fact]:
    """Which rules found how much, the worst first."""
    named = {found.code: found for found in reversed(checked.findings)}
    for code in dict.fromkeys(found.code for found in checked.findings):
        mark = SEVERITY_MARKS[named[code].severity].glyph
        yield Fact(f"{mark} {code}", (f"{count(checked.counts[code])} {named[code].name}",))


def _trace(loaded: LoadedTrace) -> Iterator[Block]:
    yield from (Fact(name, (text,)) for name, text in identity(loaded.trace))
    yield Fact("steps", (num_steps(loaded.composition),))
    yield from _found(loaded.result) if loaded.result else ()
    yield Heading("where to begin")
    if loaded.findings:
        yield Paragraph("Press n for the next finding, or click one below.")
    if loaded.timeline.kinds_of("requests").intersection(WAITS):
        yield Paragraph("Click a waiting bar to read why it waits.")
    yield Paragraph("Drag to move, wheel to zoom, click a span to read it, ? for all keys.")
    yield from told_of_it(loaded.trace)
