"""The colours and marks of every front: one thing, one colour, and never colour alone.

They stand on a dark ground; `app/light.py` says what each is on a light one.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

BACKGROUND, PANEL, RAISED, BORDER = "#0E1116", "#151A21", "#1C232C", "#2A323D"
TEXT, MUTED = "#E6EDF3", "#9AA4B2"
INK = BACKGROUND
"""Text that stands on a span of any state but `waiting`, `idle` and `held`."""
ACCENT = "#7AA2FF"
"""What is selected, and nothing else."""
HIT, HIT_GLYPH = "#E879C6", "◆"
"""Where a condition is met that is looked for."""


@dataclass(frozen=True, slots=True)
class State:
    """What a span shows: its name, colour, glyph in a terminal, and a second cue in a browser."""

    name: str
    colour: str
    glyph: str
    cue: str


STATES: tuple[State, ...] = (
    State("nothing", BACKGROUND, " ", ""),
    State("waiting", "#5B6472", "┄", "hollow"),
    State("prefill", "#46C3FE", "P", "solid"),
    State("decode", "#F5B971", "D", "ticks"),
    State("mixed", "#E6FAFA", "M", "split"),
    State("preempted", "#F95213", "▼", "mark"),
    State("recompute", "#AC5DD2", "R", "hatch"),
    State("idle", "#2A323D", "·", "hollow"),
    State("AIC", "#5D5E9E", "█", "label"),
    State("AIV", "#51B9BD", "░", "label"),
    State("MIX", "#F2E962", "▓", "label"),
    State("held", "#3D4754", "▚", "hatch"),
    State("front-end", "#2F5D62", "»", "hollow"),
    State("counter", "#7F8B9B", "▁", "line"),
    State("span 1", "#6C7889", "█", "label"),
    State("span 2", "#8592A4", "▓", "label"),
    State("span 3", "#7C8A83", "▒", "label"),
    State("span 4", "#94897C", "░", "label"),
    State("name 1", "#E69F00", "█", "label"),
    State("name 2", "#56B4E9", "▓", "label"),
    State("name 3", "#009E73", "█", "label"),
    State("name 4", "#F0E442", "▓", "label"),
    State("name 5", "#0072B2", "█", "label"),
    State("name 6", "#D55E00", "▓", "label"),
    State("name 7", "#CC79A7", "█", "label"),
    State("other names", "#8A8F98", "░", "label"),
    State("gemm", "#6D71DB", "█", "label"),
    State("attention", "#F4A42C", "▓", "label"),
    State("kernel", "#90FED5", "█", "label"),
    State("communication", "#E0405A", "▓", "label"),
    State("copy", "#A6ACF2", "░", "label"),
    State("overwritten", "#EAFF00", "✗", "mark"),
    State("blocked", "#FFF1C9", "▒", "hatch"),
    State("mismatched", "#A3D93B", "≠", "hatch"),
    State("absent", "#9A875A", "∅", "hollow"),
    State("cached", "#5E9470", "○", "hollow"),
    State("owner 1", "#E69F00", "█", "label"),
    State("owner 2", "#56B4E9", "█", "label"),
    State("owner 3", "#009E73", "█", "label"),
    State("owner 4", "#F0E442", "█", "label"),
    State("owner 5", "#0072B2", "█", "label"),
    State("owner 6", "#D55E00", "█", "label"),
    State("owner 7", "#CC79A7", "█", "label"),
    State("no KV blocks", "#92550C", "b", "blocks"),
    State("no running slot", "#3F619E", "s", "rails"),
    State("no token budget", "#85886D", "t", "slopes"),
    State("other steps first", "#21989B", "o", "turns"),
    State("another reason", "#7E6D55", "r", "posts"),
    State("not ready", "#547899", "z", "dashes"),
)
(
    NOTHING, WAITING, PREFILL, DECODE, MIXED, PREEMPTED, RECOMPUTE, IDLE, AIC, AIV, MIX, HELD,
    FRONT_END, COUNTER,
    SPAN, _, _, _,
    NAME, _, _, _, _, _, _,
    OTHER_NAME,
    GEMM, ATTENTION, KERNEL, COMMUNICATION, COPY,
    OVERWRITTEN, BLOCKED, MISMATCHED, ABSENT, CACHED,
    OWNER, _, _, _, _, _, _,
    NO_BLOCKS, NO_SLOT, NO_BUDGET, OTHER_STEPS, ANOTHER_REASON, NOT_READY,
) = range(len(STATES))  # fmt: skip
UNKNOWN = SPAN
"""A step or block whose kind the trace does not say."""
REASONS = (NO_BLOCKS, NO_SLOT, NO_BUDGET, OTHER_STEPS, ANOTHER_REASON, NOT_READY)
"""What a request waited for, where that is recorded: the parts of its waits."""
WAITS = (WAITING, *REASONS)
NOT_BUSY = (HELD, *WAITS, PREEMPTED, IDLE, FRONT_END, BLOCKED, ABSENT, CACHED)
"""States in which nothing is done: who waits or holds a core does nothing."""
SEEN_FIRST = (OVERWRITTEN,)
"""Faults: a pixel that has any of this shows it, however short it is."""
OWNERS = range(OWNER, OWNER + 7)
"""Requests that own KV blocks, so that neighbours differ: the colours of Okabe and Ito again."""
OF_CALLS = (COMMUNICATION, MISMATCHED, BLOCKED, ABSENT)
"""Collective calls: returned, not what other ranks came with, never returned, never entered."""
MARKS = (PREEMPTED, MIXED)
"""States that have a sign in every pixel that they are in at all, whatever fills it most."""
PARTS = (RECOMPUTE, PREFILL, DECODE)
"""What the batch of a mixed step computes: its span is split by them, from the top."""
NUM_SPAN_SHADES = NAME - SPAN
NAMED = range(NAME, OTHER_NAME)
"""The names that took most of a profile, by their share: the colours of Okabe and Ito."""
OF_KINDS = {
    "gemm": GEMM, "attention": ATTENTION, "kernel": KERNEL, "communication": COMMUNICATION,
    "copy": COPY,
}  # fmt: skip
"""The state of what a device executed, by what it was for, where colours are by state."""
IN_LEGEND = (
    *range(PREFILL, RECOMPUTE + 1), OVERWRITTEN, BLOCKED, MISMATCHED, ABSENT, WAITING,
    *range(AIC, COUNTER), *REASONS, *OF_KINDS.values(), CACHED, IDLE,
)  # fmt: skip
"""States that a legend names, what computes first: a narrow one is cut at its end.

Names of spans have entries of their own, and owners are labels.
"""
CORES = {"AIC": "cube core", "AIV": "vector core", "MIX": "both at once"}
"""What the names of core groups stand for, wherever they are shown."""
NAMES_OF_CORES = " · ".join(f"{name}: {meaning}" for name, meaning in CORES.items())


@dataclass(frozen=True, slots=True)
class Mark:
    """How a finding's severity is shown: a glyph and its colour."""

    glyph: str
    colour: str


SEVERITY_MARKS: dict[str, Mark] = {
    "error": Mark("✖", "#F95213"),
    "warning": Mark("▲", "#F5B972"),
    "info": Mark("●", MUTED),
}
"""A warning is a shade of its own, as close to decode as can be: on a light ground it is darker."""
FLAG, FLAG_GLYPH = "#7FD1A0", "⚑"
"""Where a user put a flag."""
DIVERGED_GLYPH = "≠"
"""Marks where two traces diverge first."""
NOT_APPLICABLE = "○"
"""Marks what no rule could judge: neither a finding nor clean."""


def shade(category: str) -> int:
    """State of a span of this category: the same category has the same shade in every trace."""
    return SPAN + zlib.crc32(category.encode("utf-8", "replace")) % NUM_SPAN_SHADES
