"""Arrows between spans, as far as a trace holds them: who launched, released or displaced whom.

A launch and a kernel share a correlation; of several calls that do, the first launched. Of a task
that another depends on, the block that ended last released it; the arrow leads to the first block
of the one that waited, and holds for all of its blocks. A preemption leads from whatever the
request was in, for which another gave way, to the wait that began. The calls of a collective lead
from rank to rank as these entered it. Arrows that a file draws itself lead from what encloses each
end to what encloses the next. What was written to a buffer leads to whoever read it, and so does a
write that went over it before it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import starmap

import numpy as np
import polars as pl

from stepscope.app.palette import HELD
from stepscope.app.timeline.flows.span_numbers import NONE, SpanNumbers
from stepscope.app.timeline.lanes.buffers import contents_of
from stepscope.app.timeline.lanes.lane import Ints, Subject, clipped, placeable
from stepscope.ingest.derive.collectives.calls import MEETING, operations
from stepscope.ingest.derive.launches import GPU_ANNOTATION
from stepscope.ingest.schema import ON_DEVICE
from stepscope.ingest.trace import Trace

LAUNCH, TASK, PREEMPTION, ARROW, CONTENTS, OVERWRITE, COLLECTIVE = range(7)
"""What an arrow stands for; where two say the same of two spans, the first of these."""
NO_CALLS = (GPU_ANNOTATION, "cuda_sync")
"""Categories that share a correlation and launch nothing."""
Lanes = Callable[[int, Subject], int | None]
Edges = tuple[Ints, Ints]


class Ties:
    """The arrows into and out of every span, by the numbers of spans; made when first asked for.

    `whole` gives the span that stands for all blocks of a task, and any other span itself.
    """

    def __init__(self, trace: Trace, numbers: SpanNumbers, lane_of: Lanes) -> None:
        self._trace = trace
        self.numbers = numbers
        self._lane_of = lane_of

    def preceding(self, number: int) -> list[tuple[int, int]]:
        """What leads to a span: numbers of spans and kinds, what ended last first."""
        source, target, kind, _ = self._edges
        whole = self._whole(number)
        own = slice(*np.searchsorted(target, (whole, whole + 1)).tolist())
        return self._by_time(source[own], kind[own], last=True)

    def following(self, number: int) -> list[tuple[int, int]]:
        """What a span leads to, what begins first first."""
        source, target, kind, by_source = self._edges
        whole = self._whole(number)
        key, order = by_source
        own = order[slice(*np.searchsorted(key, (whole, whole + 1)).tolist())]
        del source
        return self._by_time(target[own], kind[own], last=False)

    def __len__(self) -> int:
        return len(self._edges[0])

    def _by_time(self, numbers: Ints, kind: Ints, *, last: bool) -> list[tuple[int, int]]:
        if len(numbers) < 2:  # as most have on a path, which asks for each span
            return list(zip(numbers.tolist(), kind.tolist(), strict=True))
        start, end = self.numbers.times(numbers)
        order = np.lexsort((numbers, -end if last else start))
        return list(zip(numbers[order].tolist(), kind[order].tolist(), strict=True))

    def _whole(self, number: int) -> int:
        block, first = self._blocks
        at = int(np.searchsorted(block, number))
        return int(first[at]) if at < len(block) and block[at] == number else number

    @cached_property
    def _edges(self) -> tuple[Ints, Ints, Ints, Edges]:
        """Arrows by their target; and their order by what stands for their source as a whole."""
        found = [
            (kind, *edges())
            for kind, edges in (
                (LAUNCH, self._launches),
                (TASK, self._tasks),
                (PREEMPTION, self._preemptions),
                (OVERWRITE, self._overwritten),
                (ARROW, self._arrows),
                (CONTENTS, self._contents),
                (COLLECTIVE, self._collectives),
            )
        ]
        frame = pl.concat(list(starmap(_edges, found)))
        frame = frame.filter(pl.col("source") != pl.col("target"))
        frame = frame.unique(["source", "target"], keep="first", maintain_order=True)
        frame = frame.sort("target", "source")
        source, target = frame["source"].to_numpy(), frame["target"].to_numpy()
        key = self._wholes(source)
        order = np.argsort(key, kind="stable")
        return source, target, frame["kind"].to_numpy(), (key[order], order)

    def _wholes(self, numbers: Ints) -> Ints:
        block, first = self._blocks
        if not len(block):
            return numbers
        at = np.searchsorted(block, numbers).clip(0, len(block) - 1)
        return np.where(block[at] == numbers, first[at], numbers)

    # ── launches ─────────────────────────────────────────────────────────────────────────────

    def _launches(self) -> Edges:
        key = ["rank", "correlation"]
        kind = pl.col("category").str.to_lowercase()
        rows = placeable(self._trace, "spans", "track", "correlation")
        ran = rows.filter(kind.is_in(ON_DEVICE)).select(*key, "ref")
        is_call = kind.is_null() | ~kind.is_in([*ON_DEVICE, *NO_CALLS])
        calls = rows.filter(is_call).sort("ts_ns", "ref").unique(key, keep="first")
        found = ran.join(calls.select(*key, source="ref"), on=key).collect()
        return self._numbered("spans", found["source"], found["ref"])

    def _numbered(self, table: str, source: pl.Series, target: pl.Series) -> Edges:
        of_rows = self.numbers.of_rows
        return of_rows(table, source.to_numpy()), of_rows(table, target.to_numpy())

    # ── tasks ────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _of_tasks(self) -> pl.DataFrame:
        """Of each task with blocks on the timeline: the first block to begin, the last to end."""
        blocks = placeable(self._trace, "core_spans", "task").select("rank", "task", "ref")
        frame = blocks.collect()
        number = self.numbers.of_rows("core_spans", frame["ref"].to_numpy())
        start, end = self.numbers.times(number)
        frame = frame.with_columns(
            number=pl.Series(number), start=pl.Series(start), end=pl.Series(end)
        ).filter(pl.col("number") != NONE)
        first = pl.col("number").sort_by("start", "number").first()
        last = pl.col("number").sort_by("end", "number").last()
        return frame.with_columns(first=first.over("rank", "task"), last=last.over("rank", "task"))

    @cached_property
    def _blocks(self) -> Edges:
        """Every block of a task, by number, and the one that stands for all of them."""
        if not self._trace.has("core_spans"):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        frame = self._of_tasks.sort("number")
        return frame["number"].to_numpy(), frame["first"].to_numpy()

    def _tasks(self) -> Edges:
        if not self._trace.has("task_edges") or not self._trace.has("core_spans"):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        of_tasks = self._of_tasks.unique(["rank", "task"]).select("rank", "task", "first", "last")
        before = of_tasks.select("rank", from_task="task", source="last")
        after = of_tasks.select("rank", to_task="task", target="first")
        edges = self._trace.task_edges.select("rank", "from_task", "to_task").unique().collect()
        found = edges.join(before, on=["rank", "from_task"]).join(after, on=["rank", "to_task"])
        return found["source"].to_numpy(), found["target"].to_numpy()

    # ── preemptions ──────────────────────────────────────────────────────────────────────────

    def _preemptions(self) -> Edges:
        gave_way = (
            placeable(self._trace, "lifecycle", "by_request")
            .filter(pl.col("event") == "preempt", pl.col("by_request") != pl.col("request"))
            .select("ref", "rank", "by_request", ts_ns=clipped(pl.col("ts_ns")))
            .collect()
        )
        target = self.numbers.of_rows("lifecycle", gave_way["ref"].to_numpy())
        pairs = gave_way.select("rank", "by_request").unique()
        lanes = [self._lane_of(rank, ("request", name)) for rank, name in pairs.iter_rows()]
        named = pairs.with_columns(lane=pl.Series(lanes, dtype=pl.Int64))
        lane = gave_way.join(named, on=["rank", "by_request"], how="left", maintain_order="left")[
            "lane"
        ]
        source = self._shown(lane.fill_null(NONE).to_numpy(), gave_way["ts_ns"].to_numpy())
        return source, target

    def _shown(self, lanes: Ints, times: Ints) -> Ints:
        """The number of the span that each lane shows at a time, NONE where it shows nothing."""
        found = np.full(len(lanes), NONE, np.int64)
        for section, first in zip(self.numbers.sections, self.numbers.first, strict=False):
            own = lanes - section.first_lane
            rows = np.flatnonzero((own >= 0) & (own < len(section.index.offsets) - 1))
            last = section.index.began_by(own[rows], times[rows]) - 1
            is_in = (last >= section.index.offsets[own[rows]]) & (last >= 0)
            shown = last.clip(0)
            is_in &= (section.index.ends(shown) > times[rows]) & (
                section.index.state[shown] != HELD
            )
            found[rows[is_in]] = last[is_in] + first
        return found

    # ── buffers ──────────────────────────────────────────────────────────────────────────────

    def _contents(self) -> Edges:
        return self._to_reads("write_ref")

    def _overwritten(self) -> Edges:
        return self._to_reads("overwrite_ref")

    def _to_reads(self, source: str) -> Edges:
        """From the write that a column tells to the read of which it tells that."""
        if not self._trace.has("accesses"):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        reads = contents_of(self._trace).reads.drop_nulls(source)
        return self._numbered("accesses", reads[source], reads["ref"])

    # ── collectives ──────────────────────────────────────────────────────────────────────────

    def _collectives(self) -> Edges:
        """From each rank that entered a collective to the rank that entered it next."""
        if not self._trace.has("collectives"):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        numbered = self._trace.collectives.with_row_index("ref")
        recorded = operations(numbered.filter(pl.col("inferred").is_null()))
        frame = (
            recorded.select("ref", "rank", "ts_ns", at=pl.struct(MEETING).hash())
            .sort("at", "ts_ns", "rank", "ref")
            .collect()
        )
        follows = frame.select(
            (pl.col("at") == pl.col("at").shift(1)).fill_null(value=False)
        ).to_series()
        before = frame["ref"].shift(1).filter(follows)
        return self._numbered("collectives", before, frame["ref"].filter(follows))

    # ── arrows of the file ───────────────────────────────────────────────────────────────────

    def _arrows(self) -> Edges:
        """From each end of an arrow to the next of the same arrow, as the file has them."""
        if not self._trace.has("flows") or not self._trace.has("spans"):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        ends = self._bound().sort("rank", "flow", "ts_ns", "is_end", "row")
        same = ["rank", "flow", "name", "category"]
        before = pl.col("number").shift(1).over(same)
        found = (
            ends.with_columns(before=before)
            .filter(pl.col("end") != "start")
            .drop_nulls(["before", "number"])
        )
        return found["before"].to_numpy(), found["number"].to_numpy()

    def _bound(self) -> pl.DataFrame:
        """The ends of arrows, each with the innermost span that it lies on; null on none."""
        ends = placeable(self._trace, "flows", "track", "flow").with_columns(row="ref")
        ends = ends.with_columns(is_end=pl.col("end") != "start").sort("ts_ns")
        spans = (
            placeable(self._trace, "spans", "track")
            .filter(pl.col("form").is_null() | (pl.col("form") != "instant"))
            .select("rank", "track", "ts_ns", "ref", dur_ns=pl.col("dur_ns").fill_null(1 << 61))
            .with_columns(until=pl.col("ts_ns") + pl.col("dur_ns").clip(0, 1 << 61))
            .sort("ts_ns", -pl.col("until"))
        )
        found = ends.select(
            "rank", "track", "ts_ns", "flow", "name", "category", "end", "is_end", "row"
        ).join_asof(
            spans.select("rank", "track", "ts_ns", "ref", "until"),
            on="ts_ns", by=["rank", "track"], check_sortedness=False,
        )  # fmt: skip
        frame = found.collect()
        numbers = self.numbers.of_rows("spans", frame["ref"].fill_null(0).to_numpy())
        is_on = (frame["ref"].is_not_null() & (frame["until"] >= frame["ts_ns"])).to_numpy()
        number = pl.Series("number", np.where(is_on, numbers, NONE))
        return frame.with_columns(number.set(number == NONE, None))


def _edges(kind: int, source: Ints, target: Ints) -> pl.DataFrame:
    known = (source != NONE) & (target != NONE)
    frame = pl.DataFrame(
        {"source": source[known], "target": target[known]},
        schema={"source": pl.Int64, "target": pl.Int64},
    )
    return frame.with_columns(kind=pl.lit(kind, pl.Int64))


ENDS: Mapping[int, tuple[str, str]] = {
    LAUNCH: ("launched by", "launches"),
    TASK: ("waits for", "is waited for by"),
    PREEMPTION: ("preempted for", "preempts"),
    ARROW: ("arrow from", "arrow to"),
    CONTENTS: ("written by", "read by"),
    OVERWRITE: ("overwritten by", "overwrites what is read by"),
    COLLECTIVE: ("entered after", "entered before"),
}
"""What is said of the other end of an arrow: of where it comes from, of where it leads."""
