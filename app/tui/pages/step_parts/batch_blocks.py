"""The batch of a step: a line a request, with a bar of its tokens where these differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepscope.app.debug import batch_heading
from stepscope.app.palette import DECODE, PREFILL, RECOMPUTE, STATES
from stepscope.app.present.blocks import Heading, Paragraph, Tone
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, RAISED, TEXT, ink
from stepscope.app.tui.pages.step_parts.step_view import StepView
from stepscope.app.tui.widgets.prose import Painted, Shown
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.units import count
from stepscope.app.widths import fit, width_of

BAR_WIDTH, LEAST_BAR = 12, 4
"""Cells of the bar; the least where the words beside it would be cut."""
WIDEST_NAME = 20
BEFORE_BAR = 11
"""Cells of the marks and the number that stand beside a name."""


def batch(view: StepView, width: int, most_names: int) -> Iterator[Shown]:
    """Who is in the batch, in lines of at most `width` cells."""
    rows = view.detail.rows
    heading, unsaid = batch_heading(view.detail)
    yield Heading(heading)
    if unsaid:
        yield Paragraph(unsaid, Tone.MUTED)
    shown = rows[:most_names]
    most = max((row["num_tokens"] for row in rows), default=1) or 1
    widest = min(max((width_of(str(row["request"])) for row in rows), default=0), WIDEST_NAME)
    room = width - BEFORE_BAR - widest
    bar = 0 if most == 1 else BAR_WIDTH
    is_narrow = any(bar + width_of(_so_far(row)) > room for row in shown)
    if is_narrow:
        bar = min(bar, LEAST_BAR)
    places = {request: place for place, request in enumerate(view.requests)}
    for row in shown:
        name, so_far = str(row["request"]), _so_far(row, is_brief=is_narrow)
        label = fit(name, widest)
        yield Painted(
            _row(
                row,
                label + " " * (widest - width_of(label)),
                round(bar * row["num_tokens"] / most),
                bar,
                fit(so_far, room - bar),
                f"focused.follow({places[name]})",
                is_followed=name == view.request,
            )
        )


def _row(
    row: Mapping[str, Any],
    label: str,
    filled: int,
    bar: int,
    so_far: str,
    action: str,
    *,
    is_followed: bool,
) -> tuple[Piece, ...]:
    kind = RECOMPUTE if row["is_recompute"] else PREFILL if row["phase"] == "prefill" else DECODE
    state, surface = STATES[kind], RAISED if is_followed else PANEL
    full = {"solid": "█", "ticks": "▌", "hatch": "▒"}[state.cue] * min(max(filled, 1), bar)
    return (
        Piece("▌" if is_followed else " ", ink(ACCENT, surface), action),
        Piece(f"{state.glyph} ", ink(state.colour, surface, bold=True), action),
        Piece(label, ink(TEXT, surface), action),
        Piece(f"{count(row['num_tokens']):>7} ", ink(TEXT, surface), action),
        Piece(full, ink(state.colour, surface), action),
        Piece(" " * (bar - len(full)) + so_far, ink(MUTED, surface), action),
    )


def _so_far(row: Mapping[str, Any], *, is_brief: bool = False) -> str:
    parts = []
    if row["num_computed"] is not None:
        in_prompt = row["phase"] == "prefill" and row["prompt_len"] is not None
        computed = count(row["num_computed"])
        if in_prompt:
            computed += f"{'/' if is_brief else ' of '}{count(row['prompt_len'])}"
        parts.append(computed if is_brief and in_prompt else f"{computed} computed")
    if row["slot"] is not None:
        parts.append(f"slot {row['slot']}")
    if row["is_recompute"]:
        parts.append("recompute")
    return " " + " · ".join(parts)
