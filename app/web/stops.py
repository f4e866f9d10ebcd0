"""Where the page stands in the run, what it looks for there, and going from hit to hit.

A debug session is shared by all requests: whoever moves it holds `session_lock` until all is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.app.debug import Position
from stepscope.app.debug.shown.sought_hits import Sought, sought
from stepscope.app.debug.stops.stop import Hit
from stepscope.app.web.loaded import Answers, LoadedTrace
from stepscope.app.web.view import View
from stepscope.ingest.errors import ConfigError, StepscopeError

T = TypeVar("T")
HIT_MOVES = {"next-hit": 1, "previous-hit": -1}
"""The moves of an address that go to the hit after and to the one before."""
LONGEST = 500
"""Characters of a condition; a longer one is none that a person typed."""
MOST = 4
"""Conditions whose hits, and values whose lines, are remembered."""
MARK = "hit-"
"""A move to the first hit of a mark on the minimap: `hit-12.25`, by the mark's place in percent."""
_MARK = re.compile(r"hit-\d{1,3}(\.\d{1,2})?", re.ASCII)
NUM_PLACES = 400
"""Places along the minimap that can have a mark of a hit."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of a condition at a position: how many hits there are, or why none was looked for.

    `places` are shares of the minimap in percent.
    """

    told: str = ""
    failed: str = ""
    places: tuple[float, ...] = ()
    has_next: bool = False
    has_previous: bool = False


def stand(loaded: LoadedTrace, view: View) -> Position:
    """Move the debugger to where a view stands, in its rank; the caller holds the lock."""
    debugger = loaded.debugger
    debugger.switch(loaded.session.rank if view.rank is None else view.rank)
    session = debugger.session
    if view.seq is not None and session.moments.changes.ends():
        session.goto(seq=view.seq)
    elif view.ts is not None:
        session.position = session.moments.position(view.ts + loaded.origin)
    elif session.rank != loaded.session.rank:
        session.position = session.moments.position(_step_ns(loaded, view))
    elif loaded.steps:
        session.goto(step=loaded.steps[0] if view.step is None else view.step)
    else:
        session.goto(ts_ns=(view.point[1] if view.point else 0) + loaded.origin)
    return session.position


def _step_ns(loaded: LoadedTrace, view: View) -> int:
    """When the step of a view was formed, or the first: another rank is seen at that moment."""
    index = loaded.step_index(view.step) or 0
    return int(loaded.composition.formed_ns[index]) if loaded.steps else loaded.origin


def stood(loaded: LoadedTrace, view: View) -> tuple[View, int]:
    """The view with where it stands in its one spelling, and when that is."""
    with loaded.session_lock:
        return _spelled(loaded, view, stand(loaded, view))


def goes_to_hit(move: str) -> bool:
    """Whether a move of an address goes to a hit: the next, the one before, or a mark's first."""
    return move in HIT_MOVES or _MARK.fullmatch(move) is not None


def go_to_hit(loaded: LoadedTrace, view: View, move: str) -> tuple[View, int]:
    """The view at a hit of what it looks for, on whatever rank, and when that is.

    Where there is none, it stays.
    """
    with loaded.session_lock:
        stand(loaded, view)
        debugger, found = loaded.debugger, _found(loaded, view.stop)
        if isinstance(found, Sought) and (hit := _hit(loaded, found, move)):
            debugger.go_to_hit(found.stop, hit)
        return _spelled(loaded, view, debugger.position)


def _hit(loaded: LoadedTrace, found: Sought, move: str) -> Hit | None:
    if by := HIT_MOVES.get(move):
        return found.next(loaded.debugger.here, by)
    marked = found.ts_ns[_places(loaded, found) == float(move.removeprefix(MARK))]
    return found.at(int(marked[0])) if len(marked) else None


def go_by_step(loaded: LoadedTrace, view: View, by: int) -> tuple[View, int]:
    """The view at the next step (1) of its rank or at the one before (-1), and when that is."""
    with loaded.session_lock:
        stand(loaded, view)
        session = loaded.debugger.session
        _ = session.next("step") if by > 0 else session.back("step")
        return _spelled(loaded, view, session.position)


def looked(loaded: LoadedTrace, view: View) -> Looked | None:
    """What the page says of what is looked for; None where nothing is."""
    if view.stop is None:
        return None
    with loaded.session_lock:
        stand(loaded, view)
        return looked_here(loaded, view.stop)


def looked_here(loaded: LoadedTrace, words: str) -> Looked:
    """The same where the session stands; the caller holds the lock."""
    found = _found(loaded, words)
    if not isinstance(found, Sought):
        return Looked(failed=" ".join(str(found).split()))
    here = loaded.debugger.here
    return Looked(
        found.stop.nowhere if found.is_nowhere else found.told(here),
        places=tuple(np.unique(_places(loaded, found)).tolist()),
        has_next=found.stop.after(here) is not None,
        has_previous=found.stop.before(here) is not None,
    )


def _places(loaded: LoadedTrace, found: Sought) -> npt.NDArray[np.float64]:
    """The place along the minimap of each hit, as a share in percent."""
    share = (found.ts_ns - loaded.origin) / max(loaded.length, 1)
    return np.round(np.clip(share, 0, 1) * NUM_PLACES) * (100 / NUM_PLACES)


def _found(loaded: LoadedTrace, words: str | None) -> Sought | StepscopeError | None:
    """All hits of a condition, or what is wrong with it; the last few are remembered."""
    if words is None:
        return None
    look = partial(sought, loaded.debugger, words)
    return answered(loaded.sought, (loaded.debugger.rank, words), "a condition", look)


def answered(
    answers: Answers[T], asked: tuple[int, str], what: str, look: Callable[[], T]
) -> T | StepscopeError:
    """What `look` finds in a rank for words that a person typed, or what is wrong with them.

    The last few answers are remembered.
    """
    if asked not in answers:
        while len(answers) >= MOST:
            del answers[next(iter(answers))]
        answers[asked] = _answer(asked[1], what, look)
    return answers[asked]


def _answer(words: str, what: str, look: Callable[[], T]) -> T | StepscopeError:
    if len(words) > LONGEST:
        told = f"{what} of {len(words):,} characters is not looked for"
        return ConfigError(told, todo=f"write one of {LONGEST} at most")
    try:
        return look()
    except StepscopeError as error:
        return error


def _spelled(loaded: LoadedTrace, view: View, position: Position) -> tuple[View, int]:
    """A position as a view spells it: by its step, else by its change, else by its time.

    One of another rank is spelled with the step of the usual one at that time, for all around it.
    """
    if position.rank != loaded.session.rank:
        return _spelled_elsewhere(loaded, view, position)
    moments = loaded.session.moments
    place = None if position.step is None else moments.place_of(position.step)
    at_step = place is not None and moments.at_step(place) == position
    at_change = position.seq is not None and moments.at_seq(position.seq) == position
    after_ns = max(0, position.ts_ns - loaded.origin)
    here = replace(
        view,
        rank=None,
        step=position.step,
        seq=position.seq if at_change and not at_step else None,
        ts=None if at_change or at_step else after_ns,
    )
    return here, position.ts_ns


def _spelled_elsewhere(loaded: LoadedTrace, view: View, position: Position) -> tuple[View, int]:
    moments, seq = loaded.debugger.session.moments, position.seq
    after_ns = max(0, position.ts_ns - loaded.origin)
    is_change = seq is not None and moments.at_seq(seq) == position
    index = loaded.step_index_at(after_ns)
    here = replace(
        view,
        rank=position.rank,
        step=None if index is None else loaded.steps[index],
        seq=seq if is_change else None,
        ts=None if is_change else after_ns,
    )
    return here, position.ts_ns
