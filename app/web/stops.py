"""Where the page stands in the run, what it looks for there, and going from hit to hit.

A debug session is shared by all requests: whoever moves it holds `session_lock` until all is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from stepscope.app.debug import Position
from stepscope.app.debug.shown.sought_hits import NOWHERE, Sought, go_to_next, sought
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View
from stepscope.ingest.errors import ConfigError, StepscopeError

T = TypeVar("T")
HIT_MOVES = {"next-hit": 1, "previous-hit": -1}
"""The moves of an address that go to the hit after and to the one before."""
LONGEST = 500
"""Characters of a condition; a longer one is none that a person typed."""
MOST = 4
"""Conditions whose hits, and values whose lines, are remembered."""
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
    """Move the session to where a view stands; the caller holds the lock."""
    session = loaded.session
    if view.seq is not None and session.moments.changes.ends():
        session.goto(seq=view.seq)
    elif view.ts is not None:
        session.position = session.moments.position(view.ts + loaded.origin)
    elif loaded.steps:
        session.goto(step=loaded.steps[0] if view.step is None else view.step)
    else:
        session.goto(ts_ns=(view.point[1] if view.point else 0) + loaded.origin)
    return session.position


def stood(loaded: LoadedTrace, view: View) -> tuple[View, int]:
    """The view with where it stands in its one spelling, and when that is."""
    with loaded.session_lock:
        return _spelled(loaded, view, stand(loaded, view))


def go_to_hit(loaded: LoadedTrace, view: View, by: int) -> tuple[View, int]:
    """The view at the next hit (1) or the one before (-1) of what it looks for, and when that is.

    Where there is none, it stays.
    """
    with loaded.session_lock:
        stand(loaded, view)
        found = _found(loaded, view.stop)
        if isinstance(found, Sought):
            go_to_next(loaded.debugger, found, by)
        return _spelled(loaded, view, loaded.session.position)


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
    share = (found.ts_ns - loaded.origin) / max(loaded.length, 1)
    places = np.unique(np.round(np.clip(share, 0, 1) * NUM_PLACES)) * (100 / NUM_PLACES)
    return Looked(
        NOWHERE if found.is_nowhere else found.told(here),
        places=tuple(places.tolist()),
        has_next=found.stop.after(here) is not None,
        has_previous=found.stop.before(here) is not None,
    )


def _found(loaded: LoadedTrace, words: str | None) -> Sought | StepscopeError | None:
    """All hits of a condition, or what is wrong with it; the last few are remembered."""
    if words is None:
        return None
    return answered(loaded.sought, words, "a condition", partial(sought, loaded.debugger, words))


def answered(
    answers: dict[str, T | StepscopeError], words: str, what: str, look: Callable[[], T]
) -> T | StepscopeError:
    """What `look` finds for words that a person typed, or what is wrong with them.

    The last few answers are remembered.
    """
    if words not in answers:
        while len(answers) >= MOST:
            del answers[next(iter(answers))]
        answers[words] = _answer(words, what, look)
    return answers[words]


def _answer(words: str, what: str, look: Callable[[], T]) -> T | StepscopeError:
    if len(words) > LONGEST:
        told = f"{what} of {len(words):,} characters is not looked for"
        return ConfigError(told, todo=f"write one of {LONGEST} at most")
    try:
        return look()
    except StepscopeError as error:
        return error


def _spelled(loaded: LoadedTrace, view: View, position: Position) -> tuple[View, int]:
    """A position as a view spells it: by its step, else by its change, else by its time."""
    moments = loaded.session.moments
    place = None if position.step is None else moments.place_of(position.step)
    at_step = place is not None and moments.at_step(place) == position
    at_change = position.seq is not None and moments.at_seq(position.seq) == position
    after_ns = max(0, position.ts_ns - loaded.origin)
    here = replace(
        view,
        step=position.step,
        seq=position.seq if at_change and not at_step else None,
        ts=None if at_change or at_step else after_ns,
    )
    return here, position.ts_ns
