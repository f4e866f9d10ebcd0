"""The report put together: one document, of which nothing is fetched and only its own runs."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.app.present.spans.legend import names_of, states_of
from stepscope.app.timeline import State
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.report import chapters, drawings
from stepscope.app.web.report.difference import Compared
from stepscope.app.web.report.markup import colour_class, colour_rules, tag, text
from stepscope.app.web.report.one_file import digest, one_file
from stepscope.app.web.report.plates import packed, plates
from stepscope.app.web.report.scripts import ASSETS, OWN, script
from stepscope.app.web.report.shown_lanes import lanes_of, model
from stepscope.app.web.report.waits import waits
from stepscope.app.web.shades import declared, painted
from stepscope.ingest.progress import Progress

LARGEST = 5_000_000
"""Bytes that a report has at most."""
FINDINGS = 1_200_000
"""Letters of it that findings take at most."""
LOAD_PIXELS = 1600
ENVELOPE = 20_000
"""Bytes that are left free for the tags around the plates."""

THEME = '<button type="button" class="icon" id="theme" title="light or dark">◐</button>'
POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class Held:
    """A trace in the report: its letter, the lanes that are there, and the model of these."""

    letter: str
    loaded: LoadedTrace
    lanes: tuple[int, ...]
    model: dict[str, Any]

    @classmethod
    def of(cls, letter: str, loaded: LoadedTrace) -> Held:
        """Choose its lanes."""
        lanes = lanes_of(loaded)
        return cls(letter, loaded, tuple(lanes), model(loaded, lanes))


def document(traces: Sequence[LoadedTrace], progress: Progress) -> str:
    """The whole report of a trace, or of two and their difference."""
    held = [Held.of(letter, loaded) for letter, loaded in zip("AB", traces, strict=False)]
    progress("comparing", 0, None)
    compared = Compared.of((traces[0], traces[1])) if len(traces) == 2 else None
    progress("writing findings", 0, None)
    names = " and ".join(each.model["name"] for each in held)
    style, run = _style(), script()
    policy = POLICY.format(script=digest(run), style=digest(style))
    title, body = text(f"{names} · stepscope report"), _body(held, compared)

    def around(plates: str) -> str:
        whole = f'{body}\n{plates}\n<script type="module">{run}</script>'
        return one_file(title, policy, style, whole)

    room = LARGEST - len(around("").encode())
    blocks = []
    for number, each in enumerate(held):
        progress(f"drawing {each.loaded.trace.name}", 0, None)
        # As base64 three bytes are four letters.
        share = room * 3 // 4 // (len(held) - number)
        own = _data(each, compared, share, progress)
        room -= sum(map(len, own))
        blocks += own
    return around("\n".join(blocks))


def _body(held: Sequence[Held], compared: Compared | None) -> str:
    names = [tag("b", text(each.model["name"])) for each in held]
    run = [
        text(" · ".join(filter(None, (each.loaded.trace.manifest.scenario,
                                      each.loaded.trace.manifest.variant))))
        for each in held
    ]  # fmt: skip
    said = [" ".join(filter(None, pair)) for pair in zip(names, run, strict=True)]
    room = chapters.Room(FINDINGS)
    sections = [*_sections(held, compared, room)]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    head = tag("span", "stepscope report", "brand") + tag("span", " and ".join(said), "of")
    shown = "\n".join(
        f'<section class="chapter" id="{name}"><h2>{title}</h2>\n{inner}\n</section>'
        for name, title, inner in sections
    )
    return f'<header id="head">{head}<nav>{links}</nav>{THEME}</header>\n<main>{shown}</main>'


def _sections(
    held: Sequence[Held], compared: Compared | None, room: chapters.Room
) -> Iterator[tuple[str, str, str]]:
    """Each part with its id and its title."""
    if compared:
        yield "part-diff", "What differs", compared.markup()
    for each in held:
        of = f" of {each.letter}" if len(held) > 1 else ""
        yield f"{each.letter}-about", f"Overview{of}", chapters.overview(each.loaded)
    yield "part-timeline", "Timeline", _timeline(held, compared)
    for each in held:
        of = f" of {each.letter}" if len(held) > 1 else ""
        if flagged := chapters.flags(each.loaded):
            yield f"{each.letter}-flags", f"Flags{of}", flagged
    for each in held:
        of = f" in {each.letter}" if len(held) > 1 else ""
        number = f" ({len(each.loaded.findings):,})" if each.loaded.findings else ""
        found = chapters.findings(each.loaded, each.letter, room)
        yield f"{each.letter}-findings", f"Findings{of}{number}", found
    for each in held:
        of = f" in {each.letter}" if len(held) > 1 else ""
        if judged := chapters.slo(each.loaded):
            yield f"{each.letter}-slo", f"SLO{of}", judged
    for each in held:
        of = f" in {each.letter}" if len(held) > 1 else ""
        yield f"{each.letter}-blame", f"Where the time went{of}", chapters.blame(each.loaded)


def _timeline(held: Sequence[Held], compared: Compared | None) -> str:
    """The frame that the page's scripts draw into, with what each trace has of its own."""
    choice = "".join(
        f'<button type="button" class="icon choose" data-trace="{each.letter}">'
        f"{each.letter} {text(each.model['name'])}</button>"
        for each in (held if len(held) > 1 else ())
    )
    if compared and compared.found.divergence:
        choice += '<button type="button" class="icon" id="diverge">where they diverge</button>'
    own = "".join(_own(each) for each in held)
    return f"""<div class="controls">{choice}<button type="button" class="icon" id="save">save as
PNG</button><button type="button" class="icon" id="save-svg">save as
SVG</button><span id="position" class="muted"></span><span id="told-hits"></span></div>
<noscript><p class="muted">A script draws the timeline; all else needs none.</p></noscript>
<div id="page" aria-busy="true">
<div id="map"><div class="gutter"><span id="load-of"></span><span>findings</span></div>
<div id="overview"><div id="load"></div><div id="stops"></div><div id="flag-marks"></div>
<div id="marks"></div><div id="clip"><div id="window"></div></div></div></div>
<div id="stage" tabindex="0" role="application" aria-label="timeline"><div id="sticky">
<div id="corner"></div><canvas id="canvas"></canvas><div id="pinned"></div></div>
<div id="paper"><div id="names"></div></div></div>
<aside id="details"><div id="about"></div></aside>
</div><div id="tip"></div>
<p class="muted" id="hints">Drag moves, wheel zooms, shift and wheel pans, shift and drag marks,
click selects. <kbd>w</kbd> <kbd>s</kbd> zoom, <kbd>a</kbd> <kbd>d</kbd> pan, <kbd>n</kbd>
<kbd>N</kbd> next and previous finding, <kbd>f</kbd> fits the selection, <kbd>0</kbd> the whole run,
<kbd>Esc</kbd> clears.</p>{own}"""


def _own(held: Held) -> str:
    """The load and the legend of a trace, which are shown while its timeline is."""
    timeline = held.loaded.timeline
    if not timeline.lanes:
        none = tag("p", "This trace has nothing that lies on a timeline.", "muted none")
        return f'<template id="{held.letter}-own">{none}</template>'
    of = timeline.load(LOAD_PIXELS)
    chips = [_chip(state, word) for state, word in states_of(timeline)]
    chips += [_chip(state, f"{name} {share}") for state, name, share in names_of(timeline)]
    hidden = len(timeline.lanes) - len(held.model["lanes"])
    less = f"{hidden:,} of {len(timeline.lanes):,} lanes are not in this report. " if hidden else ""
    return (
        f'<template id="{held.letter}-own"><div class="load" data-of="{text(of.what)}">'
        f'{painted(drawings.load(of))}</div><div class="chips">{"".join(chips)}</div>'
        f'<p class="muted">{less}</p></template>'
    )


def _chip(state: State, name: str) -> str:
    letter = state.glyph if state.glyph in "PD▼" else ""
    mark = tag("span", letter, f"swatch {state.cue} {colour_class(state.colour)}")
    return tag("span", f"{mark} {text(name)}", "chip")


def _data(held: Held, compared: Compared | None, room: int, progress: Progress) -> list[str]:
    """The model and the plates of a trace, as text that no browser takes for a script."""
    during = compared.step_range(held.loaded) if compared else None
    explained = waits(held.loaded, held.lanes, progress)
    told = packed({**held.model, "during": during, "waits": explained})
    made = plates(held.loaded, held.lanes, during, room - len(told) - ENVELOPE)
    return [
        _block(f"{held.letter}-model", told),
        *(_block(f"{held.letter}-plate-{at}", each) for at, each in enumerate(made)),
    ]


def _block(name: str, content: bytes) -> str:
    text_of = base64.b64encode(content).decode("ascii")
    return f'<script type="application/gzip" id="{name}">{text_of}</script>'


def _style() -> str:
    """The page's own style, what a report has otherwise, and the colours."""
    sheets = (ASSETS / "stepscope.css", OWN / "report.css")
    written = "\n".join(sheet.read_text("utf-8") for sheet in sheets)
    return f"{declared()}\n{written}\n{colour_rules()}\n"
