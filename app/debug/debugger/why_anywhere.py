"""Why somebody waits whom another rank has: each rank has rows of its own, and few know of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.app.debug.moments import Position
from stepscope.app.debug.session import Session
from stepscope.app.debug.why.chain import Chain
from stepscope.app.debug.why.evidence import Evidence
from stepscope.app.debug.why.subjects import is_request, number_of
from stepscope.app.debug.why.walk import why
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

Ranks = dict[str, tuple[int, ...]]
_KNOWN: WeakKeyDictionary[Trace, Ranks] = WeakKeyDictionary()
"""Ranks of whoever was asked about, as a front asks at each step."""


def why_anywhere(
    session: Session, subject: str, at: Position, session_of: Callable[[int], Session]
) -> Chain:
    """Why somebody waits at a position, on the rank that has him: that of the session goes first.

    On another rank it is asked at the same moment, and the chain says whose it is. `session_of`
    gives the session of a rank. Raises ConfigError as `why` does, where no rank has him.
    """
    if is_of_other_rank(session, subject):
        session = session_of(number_of(subject)[1])
        return why(session, subject, session.moments.position(at.ts_ns))
    try:
        return why(session, subject, at)
    except ConfigError:
        others = [rank for rank in ranks_of(session.trace, subject) if rank != session.rank]
        if not others:
            raise
    elsewhere = session_of(others[0])
    there = at if at.rank == elsewhere.rank else elsewhere.moments.position(at.ts_ns)
    chain = why(elsewhere, subject, there)
    return replace(chain, asked_at=session.rank, num_ranks=len(others))


def rank_that_has(session: Session, subject: str) -> int:
    """The rank of a session where that has somebody or nobody has, else the first that has."""
    ranks = ranks_of(session.trace, subject)
    return session.rank if not ranks or session.rank in ranks else ranks[0]


def is_of_other_rank(session: Session, subject: str) -> bool:
    """Whether a rank is asked about whose requests, and not its collectives, give the answer."""
    kind, number = number_of(subject)
    evidence = Evidence.of(session)
    return (
        kind == "rank"
        and number != session.rank
        and number in ranks_of(session.trace, subject)
        and not len(evidence.collectives)
        and not is_request(evidence, subject.strip())
    )


def ranks_of(trace: Trace, subject: str) -> tuple[int, ...]:
    """The ranks that have rows about somebody, in order."""
    known = _KNOWN.setdefault(trace, {})
    if subject not in known:
        found = pl.concat([frame.select("rank") for frame in _rows(trace, subject.strip())])
        known[subject] = tuple(found.unique().sort("rank").collect()["rank"].to_list())
    return known[subject]


def _rows(trace: Trace, subject: str) -> list[pl.LazyFrame]:
    kind, number = number_of(subject)
    if kind == "rank":
        own = pl.col("rank") == number
        named = trace.table("lifecycle").filter(request=subject.strip())
        return [named, trace.steps.filter(own), trace.table("lifecycle").filter(own)]
    if kind == "task":
        return [trace.tasks.filter(pl.col("task") == number)]
    if kind == "core":
        return [trace.core_spans.filter(pl.col("core") == number)]
    name = subject.removeprefix("request ").strip()
    is_about = (pl.col("subject_kind") == "request") & (pl.col("subject") == name)
    return [trace.lifecycle.filter(request=name), trace.decisions.filter(is_about)]
