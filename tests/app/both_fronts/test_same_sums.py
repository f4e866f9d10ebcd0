"""The sums of random areas equal plain counts over the rows, on every file that is at hand.

The rows are cut and counted in Polars by the columns of their table, lane by lane, without the
timeline's index: who is on a lane is known by the rank, the track, the core or the request.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.sums import PERCENTILES, AreaSums
from stepscope.app.timeline.lanes.tracks import PYTHON, SAYS
from stepscope.app.timeline.profile.short_names import short_name
from stepscope.ingest.schema import ON_DEVICE
from tests.app.both_fronts.looked import Looked
from tests.tiers import slow

NUM_AREAS = 12
SHAPES = ("AIC", "AIV", "MIX")


@dataclass(frozen=True)
class Chosen:
    """A random area, and what of the trace's rows is on its lanes."""

    t0: int
    t1: int
    lanes: list[int]


def areas(run: Looked, sections: tuple[str, ...]) -> Iterator[Chosen]:
    """Random ranges over random lanes of some sections, each with all of its sub-lanes."""
    draw = random.Random(run.trace.name)
    timeline = run.timeline
    heads = [each.id for each in timeline.lanes if each.section in sections and not each.depth]
    first, last = timeline.bounds
    for _ in range(NUM_AREAS if heads and last - first > 1 else 0):
        t0 = draw.randrange(first, last)
        t1 = draw.randint(t0 + 1, last)
        chosen = draw.sample(heads, draw.randint(1, min(len(heads), 6)))
        yield Chosen(t0, t1, [lane for head in chosen for lane in timeline.family(head)])


def cut(rows: pl.DataFrame, area: Chosen) -> pl.DataFrame:
    """The rows that touch an area, with the ns of each that lie in it."""
    t0, t1 = area.t0, area.t1
    touches = (pl.col("start") < t1) & ((pl.col("end") > t0) | (pl.col("start") >= t0))
    ns = pl.min_horizontal("end", pl.lit(t1)) - pl.max_horizontal("start", pl.lit(t0))
    is_cut = (pl.col("start") < t0) | (pl.col("end") > t1)
    return rows.filter(touches).with_columns(part=ns, is_cut=is_cut)


class Rounded(int):
    """A whole number that equals what differs from it by a rounding."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and abs(int(self) - other) <= 1

    __hash__ = int.__hash__


def lengths(rows: pl.DataFrame, key: str) -> dict[str, tuple[object, ...]]:
    """Count, sum, mean, percentiles and the longest of each name, by plain NumPy."""
    found: dict[str, tuple[object, ...]] = {}
    for (name,), own in rows.group_by(key):
        ns = own["part"].to_numpy()
        shares = [Rounded(np.quantile(ns, at / 100).round()) for at in PERCENTILES]
        mean = round(float(ns.mean()), 3)
        found[str(name)] = (len(ns), int(ns.sum()), mean, *shares, int(ns.max()))
    return found


def told(frame: pl.DataFrame, key: str) -> dict[str, tuple[object, ...]]:
    """The same as the sums tell it."""
    columns = ("num_spans", "ns", "mean_ns", *(f"p{at}_ns" for at in PERCENTILES), "max_ns")
    rows = frame.filter(pl.col("num_spans") > 0).select(key, *columns).rows()
    return {name: (num, ns, round(mean, 3), *rest) for name, num, ns, mean, *rest in rows}


def busy_ns(rows: pl.DataFrame, area: Chosen) -> int:
    """How many ns of the area any row lies over, by a sweep over their ends."""
    events = sorted(
        [(max(start, area.t0), 1) for start in rows["start"]]
        + [(min(end, area.t1), -1) for end in rows["end"]]
    )
    total, depth, since = 0, 0, 0
    for at, change in events:
        total += (at - since) if depth > 0 else 0
        depth, since = depth + change, at
    return total


# ── spans of profiles and of other producers ─────────────────────────────────────────────────────


def all_spans(run: Looked) -> pl.DataFrame:
    """Every span with its beginning and end, its name as a lane says it, and whether Python's."""
    last = run.timeline.bounds[1]
    dur = pl.col("dur_ns").clip(0)
    end = pl.when(form="unfinished").then(pl.coalesce(pl.col("ts_ns") + dur, last))
    rows = run.trace.spans.drop_nulls(["ts_ns", "track"]).with_columns(
        start="ts_ns",
        end=end.otherwise(pl.col("ts_ns") + dur.fill_null(0)),
        is_python=(pl.col("category") == "python_function").fill_null(value=False),
        ran=pl.col("category").str.to_lowercase().is_in(ON_DEVICE).fill_null(value=False),
    )
    frame = rows.collect()
    called = [
        short_name(name) if ran else name or "unnamed"
        for name, ran in frame.select("name", "ran").iter_rows()
    ]
    return frame.with_columns(called=pl.Series(called, dtype=pl.String))


def track_rows(run: Looked, spans: pl.DataFrame, head: int) -> pl.DataFrame:
    """The rows of a lane of a profile, by the rank, the track and whether they are Python's."""
    (about,) = [name.about for name in run.timeline._names[head : head + 1]]
    track = next(value for kind, value in about if kind == "track")
    lane = run.timeline.lanes[head]
    is_python = pl.col("is_python") == (lane.section == PYTHON)
    return spans.filter(pl.col("rank") == lane.rank, pl.col("track") == track, is_python)


def check_spans(run: Looked) -> int:
    spans = all_spans(run) if run.trace.has("spans") else pl.DataFrame()
    checked = 0
    for area in areas(run, tuple(SAYS)):
        sums = run.timeline.area(area.t0, area.t1, area.lanes)
        heads = [lane for lane in area.lanes if not run.timeline.lanes[lane].depth]
        by_lane = {lane: cut(track_rows(run, spans, lane), area) for lane in heads}
        rows = pl.concat(by_lane.values())
        checked += len(rows)

        assert told(sums.by_name, "name") == lengths(rows, "called"), run.trace.name
        category = rows.with_columns(kind=pl.col("category").fill_null("no category"))
        assert told(sums.by_state, "state") == lengths(category, "kind")
        assert (sums.num_spans, sums.num_cut) == (len(rows), rows["is_cut"].sum())
        check_lanes(sums, area, by_lane)
        check_pivot(sums, by_lane)
    return checked


def check_lanes(sums: AreaSums, area: Chosen, by_lane: dict[int, pl.DataFrame]) -> None:
    for row in sums.by_lane.iter_rows(named=True):
        own = by_lane[row["lane"]]
        busy = busy_ns(own, area)
        assert (row["num_spans"], row["ns"]) == (len(own), own["part"].sum())
        assert (row["busy_ns"], row["held_ns"]) == (busy, 0)
        assert row["idle_ns"] == area.t1 - area.t0 - busy


def check_pivot(sums: AreaSums, by_lane: dict[int, pl.DataFrame]) -> None:
    found = {
        (row["lane"], row["name"]): (row["num_spans"], row["ns"])
        for row in sums.by_lane_and_name.iter_rows(named=True)
    }
    counted = {
        (lane, name): (len(own), own["part"].sum())
        for lane, rows in by_lane.items()
        for (name,), own in rows.group_by("called")
    }
    assert found == counted


# ── blocks on cores ──────────────────────────────────────────────────────────────────────────────


def core_rows(run: Looked) -> pl.DataFrame:
    """Blocks, and what their cores were held for them: after the dispatch and the block before."""
    last = run.timeline.bounds[1]
    blocks = run.trace.core_spans.drop_nulls(["ts_ns", "core"]).collect()
    named = run.trace.tasks.select("rank", "task", "name").collect()
    names = {(rank, task): name for rank, task, name in named.reverse().iter_rows()}
    called = [
        names.get((rank, task)) or f"task {task}"
        for rank, task in blocks.select("rank", "task").iter_rows()
    ]
    return blocks.with_columns(
        start="ts_ns",
        end=pl.max_horizontal(pl.col("end_ns").fill_null(last), "ts_ns"),
        called=pl.Series(called, dtype=pl.String),
    )


def check_cores(run: Looked) -> int:
    if not run.trace.has("core_spans"):
        return 0
    blocks, checked = core_rows(run), 0
    for area in areas(run, ("core groups",)):
        sums = run.timeline.area(area.t0, area.t1, area.lanes)
        own = pl.concat([blocks.clear(), *(rows_of_core(run, blocks, at) for at in area.lanes)])
        rows = cut(own, area)
        checked += len(rows)

        assert told(sums.by_name, "name") == lengths(rows, "called"), run.trace.name
        states = {name: row for name, row in told(sums.by_state, "state").items() if name in SHAPES}
        assert states == lengths(rows.filter(pl.col("shape").is_in(SHAPES)), "shape")
        assert sums.num_spans == len(rows)
        works = rows.filter(pl.col("shape") != "DUMMY")
        assert sums.by_lane["busy_ns"].sum() == works["part"].sum()
        held = sum(held_ns(run, lane, area) for lane in area.lanes)
        assert sums.by_lane["held_ns"].sum() == held == sums.by_name["held_ns"].sum()
    return checked


def rows_of_core(run: Looked, blocks: pl.DataFrame, lane: int) -> pl.DataFrame:
    about = dict(run.timeline._names[lane].about)
    kind = run.timeline.lanes[lane].label
    core = pl.col("core") == (-1 if about["core"] is None else about["core"])
    named = pl.col("core_kind").is_null() | (pl.col("core_kind") == kind) | kind.startswith("core")
    group = pl.col("group").eq_missing(pl.lit(about["group"], pl.Int32))
    return blocks.filter(core, group, named, pl.col("rank") == run.timeline.lanes[lane].rank)


def held_ns(run: Looked, lane: int, area: Chosen) -> int:
    """How long a core had a block that was dispatched and none that ran, ns by ns of its ends."""
    rows = rows_of_core(run, core_rows(run), lane)
    if run.timeline.lanes[lane].depth:
        return 0
    rows = rows.sort("start", "end")
    total, free = 0, None
    for given, start, end in rows.select("dispatch_ns", "start", "end").iter_rows():
        since = start if given is None else given
        since = since if free is None else max(since, free)
        total += max(0, min(start, area.t1) - max(since, area.t0))
        free = end if free is None else max(free, end)
    return total


# ── requests ─────────────────────────────────────────────────────────────────────────────────────


def check_requests(run: Looked) -> int:
    """What the batches' rows tell: how many of each phase a range has, and how long."""
    if not run.trace.has("batch_rows") or not run.trace.has("steps"):
        return 0
    steps = run.trace.steps.select("rank", "step", start="ts_ns", dur="dur_ns")
    steps = steps.drop_nulls().unique(["rank", "step"])
    again = pl.col("is_recompute").fill_null(value=False)
    rows = (
        run.trace.batch_rows.drop_nulls(["request", "step"])
        .join(steps, on=["rank", "step"])
        .with_columns(
            end=pl.col("start") + pl.col("dur"),
            state=pl.when(again).then(pl.lit("recompute")).otherwise("phase"),
        )
        .collect()
    )
    if len(rows) != run.trace.num_rows("batch_rows"):
        return 0
    checked = 0
    for area in areas(run, ("requests",)):
        named = {
            (run.timeline.lanes[lane].rank, dict(run.timeline._names[lane].about)["request"])
            for lane in area.lanes
        }
        keys = pl.DataFrame(
            list(named), schema={"rank": pl.Int32, "request": pl.String}, orient="row"
        )
        own = cut(rows.join(keys, on=["rank", "request"]), area)
        checked += len(own)
        sums = run.timeline.area(area.t0, area.t1, area.lanes)
        states = ("prefill", "decode", "recompute")
        shown = {name: row for name, row in told(sums.by_state, "state").items() if name in states}
        assert shown == lengths(own, "state"), run.trace.name
    return checked


@slow
def test_sums_of_tracks_equal_counts_over_the_spans_of_every_profile(
    profiles: list[Looked],
) -> None:
    assert [run.trace.name for run in profiles if not check_spans(run)] == []


@slow
def test_sums_of_cores_and_requests_equal_counts_over_the_rows_of_every_real_run(
    real_runs: list[Looked],
) -> None:
    assert sum(check_cores(run) for run in real_runs) > 1_000
    assert sum(check_requests(run) for run in real_runs) > 1_000
    assert sum(check_spans(run) for run in real_runs) > 1_000


@slow
def test_sums_of_cores_and_requests_equal_counts_over_the_rows_of_every_scenario(
    scenario_run: Looked,
) -> None:
    has_any = scenario_run.trace.has("core_spans") or scenario_run.trace.has("batch_rows")

    assert (check_cores(scenario_run) + check_requests(scenario_run) > 0) == has_any


@slow
def test_the_sums_are_the_same_in_both_colours(profiles: list[Looked]) -> None:
    for run in profiles:
        check_colours(run)


@slow
def test_sums_of_tracks_of_the_samples_equal_counts_over_their_spans(
    sample_profiles: list[Looked],
) -> None:
    assert [run.trace.name for run in sample_profiles if not check_spans(run)] == []
    for run in sample_profiles:
        check_colours(run)


def check_colours(run: Looked) -> None:
    lanes = range(len(run.timeline.lanes))
    one, other = (
        Timeline.of(run.trace).coloured(by).area(*run.timeline.bounds, lanes)
        for by in ("name", "state")
    )
    assert one.by_name.equals(other.by_name)
    assert one.by_state.equals(other.by_state)
