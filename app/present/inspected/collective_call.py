"""A collective call in full: what it is, who is expected, who came when, and who never came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.collectives import of_group, told
from stepscope.app.palette import ABSENT, BLOCKED
from stepscope.app.present.blocks import AtSpan, Block, Fact, Paragraph, Table, Target
from stepscope.app.present.where import when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes.collective_calls import subject_of_group
from stepscope.app.units import duration
from stepscope.ingest.derive.collectives.calls import GROUP, expected
from stepscope.ingest.trace import Trace

MOST_RANKS = 32
Row = dict[str, Any]


def call_blocks(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What is known of a call and of its counterparts on other ranks; nothing of other spans."""
    if span.ref[0] != "collectives":
        return
    row = timeline.row(span.ref)
    of_group_rows = _of_group(row, trace)
    call = {**row, **dict(zip(GROUP, _group(row), strict=True))}
    came = _facing(row, of_group_rows)
    users = set(of_group_rows.select("rank").unique().collect()["rank"])
    ranks = _expected(row) or users
    missing = sorted((ranks & {*trace.manifest.ranks, *users}) - {each["rank"] for each in came})
    yield Paragraph(_sentence(span, timeline, call, came, missing))
    yield Fact("operation", (told(call),))
    if row["ordinal"] is not None:
        yield Fact("place", (f"operation {row['ordinal']:,}{of_group(call)}",))
    yield Fact("group", (call["group"] or "not recorded",))
    yield Fact("slot", ("none, or not recorded" if row["slot"] is None else str(row["slot"]),))
    yield Fact("expected", (_ranks(_expected(row)) if _expected(row) else "not recorded",))
    if row["ordinal"] is None:
        yield Paragraph("Its place in the group is not recorded, so it is not known which calls of "
                        "other ranks belong to it.")  # fmt: skip
        return
    yield _who_came(came, missing, call, timeline)
    for rank in missing[:MOST_RANKS]:
        yield from _last_of(rank, of_group_rows)


def _group(row: Row) -> tuple[str, str]:
    return row["group"] or row["stream"] or "", row["expected_ranks"] or ""


def _of_group(row: Row, trace: Trace) -> pl.LazyFrame:
    """All recorded calls of the group that a call is of."""
    group, ranks = _group(row)
    return trace.collectives.filter(
        pl.col("inferred").is_null(),
        pl.coalesce("group", "stream", pl.lit("")) == group,
        pl.col("expected_ranks").fill_null("") == ranks,
    )


def _facing(row: Row, of_group_rows: pl.LazyFrame) -> list[Row]:
    """The calls of all ranks at the same place, in the order in which they were entered."""
    if row["ordinal"] is None:
        return [row]
    same = of_group_rows.filter(pl.col("ordinal") == row["ordinal"]).drop_nulls("ts_ns")
    return same.sort("ts_ns", "rank").collect().to_dicts()


def _expected(row: Row) -> set[int]:
    frame = pl.LazyFrame({"expected_ranks": [row["expected_ranks"] or ""]})
    return set(expected(frame, "rank").collect()["rank"])


def _sentence(
    span: SpanView, timeline: Timeline, call: Row, came: list[Row], missing: list[int]
) -> str:
    """What happened, in one sentence."""
    rank, what = timeline.lanes[span.lane].rank, told(call)
    if span.state == ABSENT:
        waiting = [each["rank"] for each in came if each["dur_ns"] is None]
        wait = "waits" if len(waiting) == 1 else "wait"
        return f"Rank {rank} never came to {what}, in which {_ranks(set(waiting))} {wait}."
    others = [each for each in came if each["rank"] != rank]
    unlike = [each for each in others if told(each) != told(call)]
    end = "never returned from it" if span.state == BLOCKED else "returned"
    start = f"Rank {rank} entered {what} and {end}"
    if unlike:
        faces = "; ".join(f"rank {each['rank']} came with {told(each)}" for each in unlike[:3])
        more = f" and {len(unlike) - 3} more" if len(unlike) > 3 else ""
        return f"{start}: at this place {faces}{more}."
    if missing:
        return f"{start}: {_ranks(set(missing))} never came."
    if span.state == BLOCKED:
        return f"{start}, although all came." if others else f"{start}."
    return f"{start}."


def _ranks(ranks: set[int]) -> str:
    listed = sorted(ranks)
    shown = ", ".join(map(str, listed[:MOST_RANKS]))
    more = f" and {len(listed) - MOST_RANKS:,} more" if len(listed) > MOST_RANKS else ""
    return f"{'rank' if len(listed) == 1 else 'ranks'} {shown}{more}"


def _who_came(came: list[Row], missing: list[int], call: Row, timeline: Timeline) -> Block:
    """A line for each rank: what it came with, when, and how it went; those who never came last."""
    first_ns = min((each["ts_ns"] for each in came), default=0)
    rows: list[tuple[object, ...]] = []
    leads: list[Target | None] = []
    for each in came:
        late = each["ts_ns"] - first_ns
        ended = "never returned" if each["dur_ns"] is None else f"took {duration(each['dur_ns'])}"
        entered = when(each["ts_ns"], timeline, 1) + (f", {duration(late)} later" if late else "")
        rows.append((f"rank {each['rank']}", told(each), entered, ended))
        lane = timeline.lane_of_call(
            each["rank"], subject_of_group(call["group"], call["expected_ranks"])
        )
        since = each["ts_ns"] - timeline.bounds[0]
        leads.append(None if lane is None else AtSpan(lane, since))
    rows += [(f"rank {rank}", "", "never came", "") for rank in missing]
    leads += [None] * len(missing)
    title = f"who came, {times(len(came), 'rank')}" + (
        f", and {len(missing):,} that never did" if missing else ""
    )
    return Table(
        ("rank", "with", "entered", "then"), tuple(rows[:MOST_RANKS]), title,
        num_more=max(len(rows) - MOST_RANKS, 0), leads=tuple(leads[:MOST_RANKS]),
    )  # fmt: skip


def _last_of(rank: int, of_group_rows: pl.LazyFrame) -> Iterator[Block]:
    """What a rank that never came did last in the group."""
    own = of_group_rows.filter(pl.col("rank") == rank).drop_nulls("ts_ns")
    last = own.sort("ts_ns", "ordinal").tail(1).collect()
    if last.is_empty():
        yield Fact(f"rank {rank} last", ("no call of this group is recorded",))
        return
    row = last.row(0, named=True)
    at = "" if row["ordinal"] is None else f"operation {row['ordinal']:,}, "
    yield Fact(f"rank {rank} last", (f"{at}{told(row)}",))
