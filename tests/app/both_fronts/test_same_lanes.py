"""At random moments, lanes of tracks and of the engine show what a query over the rows says.

The rows are fetched by `Trace.sql`, as `stepscope sql` does, and counted in plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from stepscope.analyzers.check.run import check
from stepscope.app.printable import plain
from stepscope.app.timeline import Lane
from stepscope.app.timeline.lanes.steps import ON_GPU
from stepscope.app.timeline.lanes.tracks import SAYS
from stepscope.app.timeline.profile.short_names import short_name
from stepscope.app.web.loaded import LoadedTrace
from stepscope.ingest.schema import ON_DEVICE
from tests.app.both_fronts.looked import Looked, Row
from tests.tiers import slow
from tests.traces import trace_of


def tracks_of(run: Looked) -> dict[tuple[int, str], list[Row]]:
    found: dict[tuple[int, str], list[Row]] = {}
    query = (
        "select rank, track, name, category, form, ts_ns, dur_ns from spans where track is not null"
    )
    for row in run.trace.sql(query).to_dicts():
        found.setdefault((row["rank"], plain(row["track"])), []).append(row)
    return found


def lanes_of(run: Looked) -> dict[tuple[int, str], list[Lane]]:
    """Lanes by rank and the name of the track."""
    lanes = [lane for lane in run.timeline.lanes if lane.section in SAYS]
    several = len({lane.rank for lane in lanes}) > 1
    found: dict[tuple[int, str], list[Lane]] = {}
    for lane in lanes:
        group = lane.group
        if several:
            group = group.removeprefix(f"rank {lane.rank}").removeprefix(" · ")
        track = " / ".join(part for part in (group, lane.label) if part)
        found.setdefault((lane.rank, track), []).append(lane)
    return found


def end_of(row: Row, last_ns: int) -> int:
    if row["dur_ns"] is not None:
        return int(row["ts_ns"] + row["dur_ns"])
    return last_ns if row["form"] == "unfinished" else int(row["ts_ns"])


def check_tracks(run: Looked) -> int:
    """Which spans the lanes of a track show at a moment, and how long they take of a range."""
    tracks, lanes = tracks_of(run), lanes_of(run)
    assert tracks.keys() == lanes.keys()
    for ts_ns in run.moments():
        for track, rows in tracks.items():
            shown = [run.timeline.at(lane.id, ts_ns) for lane in lanes[track]]
            assert Counter(
                (span.start_ns, span.end_ns, span.label)
                for span in shown
                if span and span.start_ns <= ts_ns < span.end_ns
            ) == Counter(going_on(rows, ts_ns, run.timeline.bounds[1])), (run.trace.name, track)
    for first, last in run.ranges():
        for track, rows in tracks.items():
            sums = [run.timeline.sums(lane.id, first, last) for lane in lanes[track]]
            took = sum(state.ns for each in sums for state in each.values())
            assert took == overlap(rows, first, last, run.timeline.bounds[1]), (track, first, last)
    return sum(map(len, tracks.values()))


def going_on(rows: Iterable[Row], ts_ns: int, last_ns: int) -> Iterator[tuple[int, int, str]]:
    for row in rows:
        if row["ts_ns"] <= ts_ns < (end := end_of(row, last_ns)):
            executed = (row["category"] or "").lower() in ON_DEVICE
            name = short_name(row["name"]) if executed else row["name"]
            yield row["ts_ns"], end, plain(name or "unnamed")


def overlap(rows: Iterable[Row], first: int, last: int, last_ns: int) -> int:
    return sum(max(0, min(end_of(row, last_ns), last) - max(row["ts_ns"], first)) for row in rows)


def check_step_lanes(run: Looked) -> int:
    """Which step the lanes of the engine show at a moment."""
    steps = run.rows("select rank, step, ts_ns, dur_ns from steps order by ts_ns")
    lanes = [
        lane.id
        for lane in run.timeline.lanes
        if lane.section == "steps" and lane.rank == run.session.rank
        if lane.label != ON_GPU
    ]
    ends = {
        row["step"]: following["ts_ns"] if row["dur_ns"] is None else row["ts_ns"] + row["dur_ns"]
        for row, following in zip(
            steps, [*steps, {"ts_ns": run.timeline.bounds[1]}][1:], strict=True
        )
    }
    for ts_ns in run.moments():
        spans = [run.timeline.at(lane, ts_ns) for lane in lanes]
        shown = {
            run.timeline.row(span.ref)["step"]
            for span in spans
            if span and span.start_ns <= ts_ns < span.end_ns
        }
        queried = {row["step"] for row in steps if row["ts_ns"] <= ts_ns < ends[row["step"]]}
        assert shown == queried, (run.trace.name, ts_ns)
    return len(steps)


# ── tests ────────────────────────────────────────────────────────────────────────────────────────


@slow
def test_lanes_of_tracks_show_at_any_moment_the_spans_of_a_query(profiles: list[Looked]) -> None:
    assert sum(check_tracks(run) for run in profiles) > 100_000


@slow
def test_lanes_of_the_engine_show_at_any_moment_the_step_of_a_query(
    profiles: list[Looked], real_runs: list[Looked]
) -> None:
    assert sum(check_step_lanes(run) for run in [*profiles, *real_runs]) > 100


@slow
def test_lanes_of_the_samples_show_at_any_moment_the_spans_and_the_step_of_a_query(
    sample_profiles: list[Looked], sample_run: Looked
) -> None:
    assert [run.trace.name for run in sample_profiles if not check_tracks(run)] == []
    assert check_step_lanes(sample_run) > 10


def test_a_step_that_does_not_say_how_long_it_took_lasts_until_the_next_of_its_rank() -> None:
    given: dict[int, Row] = {1: {}, 2: {"dur_ns": 50}, 3: {}, 4: {"kind": "mixed"}}
    steps = [{"step": n, "ts_ns": 100 * n, "kind": "decode", **row} for n, row in given.items()]
    others = [{"step": 1, "rank": 1, "ts_ns": 150, "kind": "decode"}]
    run = Looked(
        trace_of(steps=[*steps, *others], counters=[{"name": "c", "ts_ns": 899, "value": 1.0}])
    )
    loaded = LoadedTrace(run.trace, check(run.trace, ()))

    assert check_step_lanes(run) == 4
    assert [lane.depth for lane in run.timeline.lanes if lane.section == "steps"] == [0, 0]
    ranges = [loaded.step_range(index) for index in range(4)]
    assert ranges == [(0, 100), (100, 150), (200, 300), (300, 800)]
