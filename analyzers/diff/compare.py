"""Two runs side by side: their inputs, the first step at which they diverge, what came of it.

The step is the first in which any rows of what an engine decides or does are different
(`stages.py`), and the stage the first of that step; KV blocks and arrivals are in question only
where nothing else differs. What differs before the first step of all, as slots that are set up, is
told among the inputs. Rows that only one of the traces has, because the other ends before, are no
divergence: that one is a prefix. Traces may have any clock: no time is compared with another run's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from stepscope.analyzers.diff.outcomes import Outcomes, outcomes
from stepscope.analyzers.diff.pairing import Pairing, pair
from stepscope.analyzers.diff.run_inputs import Input, inputs
from stepscope.analyzers.diff.stages import KV_BLOCKS, STAGES, STEP, Stage, first_steps, renumbered
from stepscope.analyzers.views.known import any_row, knows
from stepscope.ingest.trace import Trace

Row = dict[str, Any]
FOLLOWING = (KV_BLOCKS, "arrivals")
EQUAL, PREFIX, DIVERGED, INCOMPARABLE = "equal", "prefix", "diverged", "incomparable"
STAMPED = ("steps", "lifecycle", "batch_rows", "core_spans", "collectives", "accesses", "outputs")


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two runs diverge: the step, and the first row of a stage that differs.

    `place` counts the stage's rows of the step from 0; `row_a` and `row_b` are the first two that
    differ (None where a run has no more of them), `only_a` and `only_b` what one run has and the
    other has not, in the columns that are compared.
    """

    rank: int
    step: int
    stage: str
    place: int
    row_a: Row | None
    row_b: Row | None
    only_a: tuple[Row, ...]
    only_b: tuple[Row, ...]


@dataclass(frozen=True)
class Difference:
    """How two traces compare.

    `verdict` is "equal" (in all that was compared), "prefix" (`shorter`, "A" or "B", ends first),
    "diverged", or "incomparable" (they have no table in common). `firsts` tells for each stage that
    both recorded the first rank and step at which it differs, None if it never does; `slower` is
    the first step that took another time, where times are simulated: measured ones never agree.
    `not_compared` are the stages that only one recorded, and columns of others. Requests are called
    as in A; `pairing` says which of them have another id in B, and `renumbered` how many KV blocks
    have another number there, as far as the same was done with them.
    """

    a: str
    b: str
    verdict: str
    inputs: tuple[Input, ...]
    divergence: Divergence | None
    shorter: str | None
    firsts: dict[str, tuple[int, int] | None]
    slower: tuple[int, int] | None
    not_compared: tuple[str, ...]
    outcomes: Outcomes
    pairing: Pairing
    renumbered: int


def diff(a: Trace, b: Trace) -> Difference:
    """Compare two traces step by step; both must number their steps alike."""
    pairing = pair(a, b)
    b = pairing.b
    in_a, in_b = (_recorded(each) for each in (a, b))
    recorded = [stage for stage in STAGES if stage.name in in_a & in_b and _any_row(stage, a, b)]
    lacking = {stage.name: _in_one(stage, a, b) for stage in recorded}
    shared = [
        replace(stage, columns=tuple(each for each in stage.columns if each not in names))
        for stage, names in zip(recorded, lacking.values(), strict=True)
    ]
    began = _first_step(a, b)
    firsts = {stage.name: first_steps(stage, a, b, began) for stage in shared}
    in_steps = {name: each.filter(pl.col("step") >= began) for name, each in firsts.items()}
    diverged, shorter = _where(a, b, in_steps)
    divergence = None
    if diverged is not None:
        name, rank, step = diverged
        (stage,) = (each for each in shared if each.name == name)
        divergence = _divergence(a, b, stage, rank, step)
    return Difference(
        a.name,
        b.name,
        _verdict(divergence, shorter, shared),
        (*inputs(a, b), *_set_up(a, b, shared, firsts, began)),
        divergence,
        shorter,
        {name: _first(frame) for name, frame in in_steps.items()},
        _first_slower(a, b),
        tuple(_not_compared(in_a ^ in_b, lacking)),
        outcomes(a, b),
        pairing,
        renumbered(a, b, in_steps[KV_BLOCKS]) if KV_BLOCKS in in_steps else 0,
    )


def _any_row(stage: Stage, *traces: Trace) -> bool:
    """Tell whether there is anything to compare: two runs are not alike in what neither did."""
    return any(any_row(stage.rows(each)) for each in traces)


def _recorded(trace: Trace) -> set[str]:
    """The stages that the trace tells of, which it also does if it says that nothing happened.

    Rows in which none of what is compared has a value were not recorded for it, nor were those of
    which nothing says that they are the stage's.
    """
    complete = {name for name, state in trace.manifest.tables.items() if state == "complete"}
    return {
        stage.name
        for stage in STAGES
        if (stage.table in complete and not trace.has(stage.table))
        or (
            knows(trace, *(f"{stage.table}.{column}" for column in stage.selected_by))
            and any(knows(trace, f"{stage.table}.{column}") for column in stage.columns)
        )
    }


def _in_one(stage: Stage, a: Trace, b: Trace) -> tuple[str, ...]:
    """The columns of a stage that only one of two traces with such rows recorded."""
    if not all(each.has(stage.table) for each in (a, b)):
        return ()
    names = [f"{stage.table}.{column}" for column in stage.columns]
    return tuple(
        column
        for column, name in zip(stage.columns, names, strict=True)
        if knows(a, name) != knows(b, name)
    )


def _not_compared(in_one: set[str], lacking: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """What only one trace recorded: stages, and of others the columns, as `decisions: resource`."""
    for stage in STAGES:
        if stage.name in in_one:
            yield stage.name
        elif names := lacking.get(stage.name):
            yield f"{stage.name}: {', '.join(names)}"


def _first(firsts: pl.DataFrame) -> tuple[int, int] | None:
    if firsts.is_empty():
        return None
    rank, step = firsts.row(0)
    return int(rank), int(step)


def _first_step(a: Trace, b: Trace) -> int:
    """The first step of either run; rows of an earlier number were written before it stepped."""
    steps = [each.table(name).select("step") for each in (a, b) for name in ("steps", "batch_rows")]
    first = pl.concat(steps).select(pl.col("step").min()).collect().item()
    return -(2**63) if first is None else int(first)


def _set_up(
    a: Trace, b: Trace, shared: list[Stage], firsts: dict[str, pl.DataFrame], began: int
) -> Iterator[Input]:
    """What was different before the first step: memory that is handed out at the start, say."""
    for stage in shared:
        for rank, step in firsts[stage.name].filter(pl.col("step") < began).iter_rows():
            found = _divergence(a, b, stage, rank, step)
            what = f"{stage.name} before the first step, rank {rank}"
            yield Input(what, *(_listed(only) for only in (found.only_a, found.only_b)))


def _listed(rows: tuple[Row, ...], most: int = 4) -> str | None:
    """The first rows that only one run has, in short."""
    said = [" ".join(str(each) for each in row.values() if each is not None) for row in rows]
    more = f" and {len(said) - most:,} more" if len(said) > most else ""
    return f"{', '.join(said[:most])}{more}" if said else None


def _where(
    a: Trace, b: Trace, firsts: dict[str, pl.DataFrame]
) -> tuple[tuple[str, int, int] | None, str | None]:
    """The first stage, rank and step that differ, or else which trace had ended where they do.

    What is decided comes before the KV blocks that are handed out for it and the step in which
    somebody happened to arrive, whenever those differ.
    """
    last_a, last_b = _last_steps(a), _last_steps(b)
    each = [
        (name in FOLLOWING, step, order, rank, name)
        for order, (name, frame) in enumerate(firsts.items())
        for rank, step in frame.iter_rows()
    ]
    shorter = None
    for _, step, _, rank, name in sorted(each):
        until_a, until_b = last_a.get(rank, step), last_b.get(rank, step)
        if step <= min(until_a, until_b):
            return (name, rank, step), None
        if until_a != until_b:
            shorter = shorter or ("A" if until_a < until_b else "B")
    return None, shorter


def _last_steps(trace: Trace) -> dict[int, int]:
    """The last step of each rank of which there is any row; a torn one does not count."""
    tables = [trace.table(name).select(STEP) for name in STAMPED]
    last = pl.concat(tables).drop_nulls().group_by("rank").agg(pl.col("step").max()).collect()
    torn = 0 if trace.manifest.closed else 1
    return {rank: step - torn for rank, step in last.iter_rows()}


def _verdict(divergence: Divergence | None, shorter: str | None, shared: list[Stage]) -> str:
    if not shared:
        return INCOMPARABLE
    if divergence is not None:
        return DIVERGED
    return EQUAL if shorter is None else PREFIX


def _divergence(a: Trace, b: Trace, stage: Stage, rank: int, step: int) -> Divergence:
    here = (pl.col("rank") == rank) & (pl.col("step") == step)
    ours, theirs = (
        stage.in_order(stage.rows(each).filter(here)).drop("place").collect() for each in (a, b)
    )
    told_a, told_b = (rows.select(stage.compared).rows() for rows in (ours, theirs))
    most = max(len(told_a), len(told_b))
    place = next(at for at in range(most) if told_a[at : at + 1] != told_b[at : at + 1])
    return Divergence(
        rank, step, stage.name, place, _row(ours, place), _row(theirs, place),
        _only(stage, ours, theirs), _only(stage, theirs, ours),
    )  # fmt: skip


def _row(rows: pl.DataFrame, place: int) -> Row | None:
    return rows.row(place, named=True) if place < len(rows) else None


def _only(stage: Stage, ours: pl.DataFrame, theirs: pl.DataFrame) -> tuple[Row, ...]:
    """What there is more of here than there, in order."""
    compared = [rows.select(stage.compared).rows() for rows in (ours, theirs)]
    more = Counter(compared[0]) - Counter(compared[1])
    only = []
    for said, row in zip(
        compared[0], ours.select(stage.columns).iter_rows(named=True), strict=True
    ):
        if more[said] > 0:
            more[said] -= 1
            only.append(row)
    return tuple(only)


def _first_slower(a: Trace, b: Trace) -> tuple[int, int] | None:
    """The first step that took another time; of clocks that measure, each step does."""
    if any(each.manifest.clock.kind != "virtual" for each in (a, b)):
        return None
    ours, theirs = (each.steps.select(*STEP, "dur_ns").drop_nulls() for each in (a, b))
    both = ours.join(theirs, on=list(STEP), suffix="_b").filter(
        pl.col("dur_ns") != pl.col("dur_ns_b")
    )
    return _first(both.select(*STEP).sort("step", "rank").head(1).collect())
