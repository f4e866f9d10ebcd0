"""The keys that move about a timeline: one table, from which both fronts make bindings and help.

A key has the name that a browser gives it (`KeyboardEvent.key`): `w`, `ArrowLeft`, `Escape`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """Keys that do one thing: the name of the `action`, and what the help `says` of it.

    The first of `keys` is the one that is shown; keys of one `group` share an entry in a footer.
    """

    keys: tuple[str, ...]
    action: str
    says: str
    group: str


TIMELINE: tuple[Key, ...] = (
    Key(("w",), "zoom-in", "zoom in", "zoom"),
    Key(("s",), "zoom-out", "zoom out", "zoom"),
    Key(("a",), "pan-left", "earlier", "pan"),
    Key(("d",), "pan-right", "later", "pan"),
    Key(("j", "ArrowDown"), "lane-down", "next lane", "lane"),
    Key(("k", "ArrowUp"), "lane-up", "previous lane", "lane"),
    Key(("h", ",", "ArrowLeft"), "previous-span", "previous span in the lane", "span"),
    Key(("l", ".", "ArrowRight"), "next-span", "next span in the lane", "span"),
    Key(("f",), "focus", "centre the selection; again: fit it", "focus"),
    Key(("m",), "mark", "mark a range: once where it begins, once where it ends", "mark"),
    Key(("v",), "mark-view", "mark the time that is in view", "area"),
    Key(("M",), "widen-area", "sum the mark over its section, one lane, all lanes", "area"),
    Key(("{",), "preceding", "what led to the span: its launch, what it waited for", "flow"),
    Key(("}",), "following", "what the span led to", "flow"),
    Key(("x",), "path", "the path that leads to the span, or no longer", "flow"),
    Key(("o",), "colours", "colours by name or by state", "colours"),
    Key(("p",), "pin", "pin the lane on top, or unpin it", "pin"),
    Key(("z",), "collapse-section", "collapse or expand the lane's section", "collapse"),
    Key(("Z",), "collapse-group", "collapse or expand the lane's group", "collapse"),
    Key(("g", "Home"), "start", "start of the trace", "ends"),
    Key(("G", "End"), "end", "end of the trace", "ends"),
    Key(("0",), "whole", "the whole trace", "ends"),
)
"""Keys of the timeline itself."""
EVERYWHERE: tuple[Key, ...] = (
    Key(("n",), "next-finding", "next finding, in the timeline", "finding"),
    Key(("N",), "previous-finding", "previous finding", "finding"),
    Key(("[",), "previous-step", "previous step", "step"),
    Key(("]",), "next-step", "next step", "step"),
    Key(("/",), "search", "find a request, task, core or step", "search"),
    Key(("S",), "rules", "codes of rules that found nothing or could not judge", "rules"),
    Key(("P",), "picture", "save what is shown as a picture", "picture"),
    Key(("T",), "light", "the colours of a light ground, or of a dark one", "light"),
    Key(("Escape",), "clear", "clear the mark, the selection, the filter", "clear"),
    Key(("?",), "help", "this help", "help"),
)
"""Keys that work on whatever page or pane is open."""
STOPS: tuple[Key, ...] = (
    Key(("B",), "break", "look for a condition, an event, a finding or what changes", "stop"),
    Key(("c",), "next-hit", "continue to the next hit", "hit"),
    Key(("C",), "previous-hit", "go back to the hit before", "hit"),
    Key(("V",), "value", "draw a value over the run", "value"),
    Key(("W",), "what-if", "what another variant, setting, or a fault less would change", "what"),
)
"""Keys that ask about the whole run and go to what was found: on the step's page, on any pane."""
RECORDING: tuple[Key, ...] = (
    Key(("F",), "follow", "keep the newest step of a recording in view, or no longer", "live"),
    Key(("H",), "pause", "hold what is shown while more is recorded; again: go on", "live"),
    Key(("L",), "reload", "read what lies on the disk by now, all of it", "live"),
)
"""Keys about what is still being recorded, or has changed on the disk: on whatever page or pane."""
FLAGS: tuple[Key, ...] = (
    Key(("y",), "flag", "put a flag with a note here, or change the one that is here", "flag"),
    Key(("Y",), "flags", "the flags that were put", "flag"),
    Key(("u",), "next-flag", "next flag", "flag"),
    Key(("U",), "previous-flag", "previous flag", "flag"),
)
"""Keys about what a user put on the timeline of one trace: on whatever page or pane."""
PAIRED: tuple[Key, ...] = (
    Key(("D",), "divergence", "where two traces diverge first", "both"),
    Key(("t",), "align", "lay B on A by time, by step, by the lane's request", "both"),
    Key(("X",), "exchange", "exchange A and B", "both"),
)
"""Keys of two traces side by side."""
KEYMAP = (*TIMELINE, *EVERYWHERE)
"""Keys whose actions move what is looked at."""
FIRST_KEYS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("n", "N"), "next and previous finding"),
    (("/",), "find a request, task, core or step"),
    (("h", "l"), "previous and next span in the lane: of a wait, why it waited"),
    (("j", "k"), "next and previous lane"),
    (("w", "s"), "zoom in and out"),
    (("a", "d"), "earlier and later"),
    (("[", "]"), "previous and next step"),
    (("1", "9"), "the pages, from the first digit to the last"),
    (("Escape",), "clear the selection, or close what is open"),
    (("?",), "this help"),
)
"""The ten that matter first, as both fronts' help has them on top."""
SECTIONS = {
    "move": ("zoom", "pan", "lane", "span", "focus", "ends"),
    "find": ("finding", "step", "search"),
    "mark and sum": ("mark", "area"),
    "what led to what": ("flow",),
    "lanes": ("pin", "collapse", "colours"),
    "conditions and changes": ("stop", "hit", "what"),
    "flags": ("flag",),
    "a recording in progress": ("live",),
    "two traces": ("both",),
}
"""Headings of the help on the page, each with the groups of keys below it."""


def section_of(key: Key) -> str:
    """The heading under which the help lists a key."""
    return next((name for name, groups in SECTIONS.items() if key.group in groups), "the page")
