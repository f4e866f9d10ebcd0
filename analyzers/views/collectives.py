"""Collectives of several ranks side by side: those that can be compared, and their words.

Which rows of which ranks are one collective is defined in `ingest.derive.collectives.calls`.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.once import once
from stepscope.ingest.derive.collectives import calls
from stepscope.ingest.derive.collectives.calls import GROUP, MEETING, meetings
from stepscope.ingest.derive.collectives.spellings import BLOCKING
from stepscope.ingest.trace import Trace

UNEVEN_OR_NOT = "alltoall"
_SHORT = {"broadcast": "B", "allreduce": "AR", "allgather": "AG", "reducescatter": "RS"}


def operations(trace: Trace) -> pl.LazyFrame:
    """The collectives that can be compared, in one spelling: see `calls.operations`."""
    return once(trace, "operations", lambda: calls.operations(trace.collectives))


def blocking(trace: Trace) -> pl.LazyFrame:
    """Operations that nobody leaves before all have entered.

    An all-to-all is one where all send the same number of elements: whom nobody sends anything
    need not wait.
    """
    found = operations(trace).filter(pl.col("kind").is_in(BLOCKING))
    exchanged = found.filter(pl.col("kind") == UNEVEN_OR_NOT)
    if not any_row(exchanged):
        return found
    sent = pl.col("num_elements")
    is_even = (sent.n_unique() == 1) & (sent.null_count() == 0)
    even = exchanged.group_by(MEETING).agg(_is_even=is_even).filter("_is_even")
    others = found.filter(pl.col("kind") != UNEVEN_OR_NOT)
    return pl.concat([others, exchanged.join(even.drop("_is_even"), on=MEETING, how="semi")])


def have_met(trace: Trace) -> bool:
    """Whether two ranks of the trace have collectives of one group."""
    ranks = once(
        trace, "ranks of groups", lambda: operations(trace).select(*GROUP, "rank").unique()
    )
    return any_row(ranks.group_by(GROUP).len().filter(pl.col("len") > 1))


def face_each_other(trace: Trace) -> bool:
    """Whether two ranks came to any one collective: without ordinals in common none is compared."""
    return have_met(trace) and any_row(meetings(operations(trace)))


def of_group(row: Mapping[str, object]) -> str:
    """` of ep`, as a sentence goes on; nothing where the group has no name."""
    return f" of {row['group']}" if row["group"] else ""


def told(row: dict[str, object]) -> str:
    """An operation as a sentence names it: `broadcast of 1 uint32 (prefill, slot 2)`."""
    size = "" if row["num_elements"] is None else f" of {row['num_elements']:,}"
    dtype = "" if row["dtype"] is None else f" {row['dtype']}"
    slot = None if row["slot"] is None else f"slot {row['slot']}"
    what = ", ".join(str(each) for each in (row["command"], slot) if each is not None)
    return f"{row['op']}{size}{dtype}{f' ({what})' if what else ''}"


def in_short(row: dict[str, object]) -> str:
    """An operation as a sequence shows it: `B(slot 2)`, `AR(decode)`."""
    name = _SHORT.get(str(row["kind"]), row["op"])
    what = [str(row["command"])] if row["command"] is not None else []
    what += [str(row["slot"])] if row["slot"] is not None else []
    return f"{name}({' '.join(what)})" if what else str(name)
