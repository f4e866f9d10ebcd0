"""Moving: by steps and by changes, to a place, to the next stop and to the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.commands.answer import Answer, Command, Group, said
from stepscope.app.debug.commands.where_it_is import change, hit_answer, traced, where
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.debugger.targets import FORMS
from stepscope.app.debug.stops.stop import Hit
from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.ingest.errors import ConfigError


def number_of(words: str, otherwise: int = 1) -> int:
    """A number of times, 1 where none is said; raises ConfigError for what is none."""
    if not words:
        return otherwise
    times = whole_number(words)
    if times is None or times < 1:
        raise ConfigError(f"{words!r} is not a number of times", todo="write it like 5")
    return times


def _moved(debugger: Debugger, move: Callable[[], bool], end: str) -> Answer:
    first = debugger.here
    arrived = move()
    lines = traced(debugger, first)
    told = lines if arrived else lines.then(said(f"that is the {end}"))
    return told.then(where(debugger)).then(Answer(facts={"arrived": arrived}))


def _step(debugger: Debugger, words: str) -> Answer:
    number = number_of(words)
    return _moved(debugger, lambda: debugger.forward("step", number), "last step")


def _stepi(debugger: Debugger, words: str) -> Answer:
    number = number_of(words)
    moved = _moved(debugger, lambda: debugger.forward("change", number), "last change")
    return change(debugger).then(moved)


def _back(debugger: Debugger, words: str) -> Answer:
    number = number_of(words)
    return _moved(debugger, lambda: debugger.back("step", number), "first step")


def _backi(debugger: Debugger, words: str) -> Answer:
    number = number_of(words)
    moved = _moved(debugger, lambda: debugger.back("change", number), "first change")
    return change(debugger).then(moved)


def _goto(debugger: Debugger, words: str) -> Answer:
    debugger.goto(words)
    return where(debugger)


def _continue(debugger: Debugger, words: str) -> Answer:
    stops = (stop for stop in debugger.stops.values() if stop.does != "trace")
    before = sum(stop.num_until(debugger.here) for stop in stops)
    more = f"; {times(before, 'hit')} came before, and rc goes to the last" if before else ""
    none = f"no stop is hit up to the end{more}"
    return _ran(debugger, debugger.resume, number_of(words), none)


def _reverse(debugger: Debugger, words: str) -> Answer:
    return _ran(debugger, debugger.reverse, number_of(words), "no stop was hit since the start")


def _ran(debugger: Debugger, run: Callable[[], Hit | None], number: int, none: str) -> Answer:
    first, hit = debugger.here, None
    for _ in range(number):
        if (hit := run()) is None:
            break
    lines = traced(debugger, first)
    told = said(none, hit=None) if hit is None else hit_answer(debugger, hit)
    return lines.then(told).then(where(debugger))


def _rank(debugger: Debugger, words: str) -> Answer:
    if (rank := whole_number(words)) is None:
        raise ConfigError(f"{words or 'nothing'} is no rank", todo="write it like rank 1")
    debugger.switch(rank)
    return where(debugger)


def _places(debugger: Debugger) -> Iterable[str]:
    return ("start", "end", *(f"@{name}" for name in debugger.flags.all))


def _middle(debugger: Debugger) -> str | None:
    steps = debugger.moments.steps
    return f"goto {steps[len(steps) // 2]}" if len(steps) else "goto 50%"


MOVING = Group(
    "moving",
    (
        Command("step", "step [N]", "go on to where the next step's batch was formed", _step,
                ("s", "next", "n"), example=lambda _debugger: "step 5"),
        Command("stepi", "stepi [N]", "go on by one change: a decision, an event, a block", _stepi,
                ("si",), example=lambda _debugger: "stepi"),
        Command("back", "back [N]", "go back to where the step before was formed", _back,
                ("b-", "reverse-step"), example=lambda _debugger: "back"),
        Command("backi", "backi [N]", "go back by one change", _backi, ("reverse-stepi",),
                example=lambda _debugger: "backi"),
        Command("goto", "goto WHERE", f"go to a place: {FORMS}", _goto, ("g",), _places, _middle),
        Command("continue", "continue [N]", "go on to the next hit of a stop", _continue,
                ("c",), example=lambda _debugger: "continue"),
        Command("rc", "rc [N]", "go back to the last hit of a stop", _reverse,
                ("reverse-continue",), example=lambda _debugger: "rc"),
        Command("rank", "rank N", "go over to another rank, at the same moment", _rank, (),
                lambda debugger: map(str, debugger.ranks),
                lambda debugger: f"rank {debugger.ranks[-1]}" if len(debugger.ranks) > 1 else None),
    ),
)  # fmt: skip
