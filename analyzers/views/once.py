"""Frames that several rules of a check need are made once, and let go of when they are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import polars as pl

from stepscope.ingest.trace import Trace

_Made = dict[tuple["Trace", str], pl.DataFrame]
_made: ContextVar[_Made | None] = ContextVar("made", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """While this lasts, keep what `once` makes."""
    before = _made.set({})
    try:
        yield
    finally:
        _made.reset(before)


def once(trace: Trace, what: str, make: Callable[[], pl.LazyFrame]) -> pl.LazyFrame:
    """Give what `make` makes of this trace under the name `what`, if need be for the first time.

    Outside `sharing` it is made each time.
    """
    made = _made.get()
    if made is None:
        return make()
    if (trace, what) not in made:
        made[trace, what] = make().collect()
    return made[trace, what].lazy()
