"""At random moments and in random ranges, every screen says what a query over the rows says.

The rows are fetched by `Trace.sql`, as `stepscope sql` does, and counted in plain Python.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

from stepscope.app import palette
from stepscope.app.debug import cores_line
from stepscope.app.present.blocks import Heading
from stepscope.app.timeline import SpanView
from stepscope.app.tui.pages.step_parts.step_blocks import right_blocks
from stepscope.app.tui.pages.step_parts.step_view import look_at_step
from stepscope.ingest.derive.states import LEAVES
from stepscope.ingest.schema import WHAT_BLOCKS
from stepscope.ingest.writers.engine_slices import engine_slices
from tests.app.both_fronts.looked import Looked
from tests.tiers import slow

BATCH = {palette.PREFILL: "batch", palette.DECODE: "batch", palette.RECOMPUTE: "batch"}
SHOWN = {
    palette.WAITING: "waiting", palette.PREEMPTED: "preempted", palette.IDLE: "out",
    palette.FRONT_END: "front-end", **BATCH,
}  # fmt: skip
ENDS = ("finish", "abort", "reject", "error")
IN_BATCH = ("recompute", "prefill", "decode", "communication", "dispatch")
WORKS = (palette.AIC, palette.AIV, palette.MIX, palette.IDLE, palette.UNKNOWN)


# ── cores ────────────────────────────────────────────────────────────────────────────────────────


def cores_at(run: Looked, ts_ns: int) -> tuple[set[int], set[int]]:
    """Which cores execute a block, and which wait with one that was dispatched to them."""
    runs = {
        row["core"]
        for row in run.blocks
        if row["ts_ns"] <= ts_ns and (row["end_ns"] is None or ts_ns < row["end_ns"])
    }
    given = {row["core"] for row in run.blocks if row["given_ns"] <= ts_ns < row["ts_ns"]}
    return runs, given - runs


def check_cores(run: Looked) -> int:
    for ts_ns in run.moments():
        runs, held = cores_at(run, ts_ns)
        cores = run.session.state_at(run.session.moments.position(ts_ns)).cores or {}

        assert {core for core, slots in cores.items() if slots.state == "running"} == runs
        assert {core for core, slots in cores.items() if slots.state == "held"} == held
        assert lanes_at(run, ts_ns) == (len(runs), len(held)), (run.trace.name, ts_ns)
        assert not cores or cores_line(cores) in step_page(run, ts_ns)
    return len(run.blocks)


def lanes_at(run: Looked, ts_ns: int) -> tuple[int, int]:
    """How many lanes of cores show a block, and how many show that they are held."""
    shown = defaultdict(set)
    for lane in run.timeline.lanes:
        span = run.timeline.at(lane.id, ts_ns) if lane.section == "core groups" else None
        if span is not None and span.end_ns > ts_ns:
            shown[lane.group, lane.label].add(span.state)
    held = sum(states == {palette.HELD} for states in shown.values())
    return len(shown) - held, held


def step_page(run: Looked, ts_ns: int) -> list[str]:
    """The headings of the terminal's step page."""
    view = look_at_step(run.session, run.session.moments.position(ts_ns), None)
    return [block.text for block in right_blocks(view, 80) if isinstance(block, Heading)]


def check_ranges(run: Looked) -> int:
    """Time in which blocks are executed, summed over the cores of a range."""
    lanes = [lane.id for lane in run.timeline.lanes if lane.section == "core groups"]
    for first, last in run.ranges():
        queried = sum(
            max(0, min(last if row["end_ns"] is None else row["end_ns"], last)
                - max(row["ts_ns"], first))
            for row in run.blocks
        )  # fmt: skip
        sums = [run.timeline.sums(lane, first, last) for lane in lanes]
        assert (
            sum(each[state].ns for each in sums for state in each if state in WORKS) == queried
        ), run
    return len(run.blocks)


# ── requests ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Told:
    """The rows about a request: its events by time, and the steps that it was in."""

    events: list[tuple[int, str]]
    batches: list[tuple[int, int]]

    @property
    def last_given_ns(self) -> int:
        """When the client was given the last of it; 0 where nothing tells."""
        return max((when for when, event in self.events if event == "deliver"), default=0)

    def is_first_under_way(self, ts_ns: int) -> bool:
        """Whether its first token was sampled, and the client was given nothing yet."""
        sampled = [when for when, event in self.events if event == "first-token"]
        given = [when for when, event in self.events if event == "deliver"]
        return bool(sampled and given) and min(sampled) <= ts_ns < min(given)

    def _after(self, event: str, when: int, state: str) -> str:
        if event in ENDS:
            return "front-end" if when < self.last_given_ns else "gone"
        if event == "defer":
            return state if state == "preempted" else "waiting"
        if event == "deliver" and state == "front-end" and when == self.last_given_ns:
            return "gone"
        return MEANS.get(event, state)

    def at(self, ts_ns: int) -> str:
        """In a batch, waiting, preempted, out of any batch, with the front end, or gone.

        Empty before anything.
        """
        if any(first <= ts_ns < last for first, last in self.batches):
            return "batch"
        state = "" if not self.batches or ts_ns < self.batches[0][0] else "out"
        for when, event in self.events:
            if when > ts_ns:
                break
            state = self._after(event, when, state)
        if not self.events and self.batches and ts_ns >= max(last for _, last in self.batches):
            return "gone"
        return state


MEANS = {
    "receive": "front-end", "arrive": "waiting", "preempt": "preempted", "admit": "out",
    "resume": "out",
}  # fmt: skip


def requests_of(run: Looked) -> dict[str, Told]:
    last_ns = run.timeline.bounds[1]
    told: dict[str, Told] = defaultdict(lambda: Told([], []))
    for row in run.rows("select * from lifecycle where request is not null order by ts_ns"):
        told[row["request"]].events.append((row["ts_ns"], row["event"]))
    steps = run.rows("select rank, step, ts_ns, dur_ns from steps order by ts_ns")
    ends = {}
    for row, following in zip(steps, [*steps, {"ts_ns": last_ns}][1:], strict=True):
        end = following["ts_ns"] if row["dur_ns"] is None else row["ts_ns"] + row["dur_ns"]
        ends[row["step"]] = row["ts_ns"], end
    for row in run.rows("select rank, request, step from batch_rows"):
        told[row["request"]].batches.append(ends[row["step"]])
    for each in told.values():
        each.batches.sort()
    return dict(told)


def check_requests(run: Looked) -> int:
    told = requests_of(run)
    slices = exported(run)
    places = random.Random(1)
    spread = places.sample(sorted(told), min(len(told), 40))
    causes = blamed_by(run)
    for ts_ns in run.moments():
        state = run.session.state_at(run.session.moments.position(ts_ns))
        for request in spread:
            queried = told[request].at(ts_ns)
            where = (run.trace.name, request, ts_ns)
            assert in_lane(run, request, ts_ns) == queried.replace("gone", ""), where
            assert at_of(slices.get(request, []), ts_ns) == queried.replace("gone", "").replace(
                "out", ""
            ), where
            if state.waiting is not None and queried != "batch":
                waits = queried in ("waiting", "preempted")
                assert (request in state.waiting) == waits, where
                assert (request in (state.running or ())) == (queried == "out"), where
            cause = at_of(causes.get(request, []), ts_ns)
            is_given = cause == "delivery" and told[request].is_first_under_way(ts_ns)
            assert is_given or cause in expected(queried), where
    return len(told)


def in_lane(run: Looked, request: str, ts_ns: int) -> str:
    lane = run.timeline.lane_of_request(run.session.rank, request)
    assert lane is not None, (run.trace.name, request)
    shown = set()
    for each in run.timeline.lanes[lane:]:
        if each.id > lane and not each.depth:
            break
        span = run.timeline.at(each.id, ts_ns)
        if span is not None and span.start_ns <= ts_ns < span.end_ns:
            shown.add(shown_by(run, span))
    return "batch" if "batch" in shown else "".join(shown)


def shown_by(run: Looked, span: SpanView) -> str:
    """What a span says of its request; a wait that says why is one of who was let in, or is not."""
    if span.state not in palette.REASONS:
        return SHOWN[span.state]
    was_let_in = span.ref[0] == "batch_rows" or run.timeline.row(span.ref)["event"] in LEAVES
    return "out" if was_let_in else "waiting"


def exported(run: Looked) -> dict[str, list[tuple[int, int, str]]]:
    """What a viewer of the exported file sees of each request."""
    shown: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    last_ns = run.timeline.bounds[1]
    for frame in engine_slices(run.trace):
        for row in frame.to_dicts():
            track = (row["track"] or "").removeprefix("requests / ")
            if track == row["track"] or row["form"] == "instant" or row["rank"]:
                continue
            end = last_ns if row["dur_ns"] is None else row["ts_ns"] + row["dur_ns"]
            name = "batch" if row["category"] == "batch row" else row["name"]
            name = "front-end" if name == "delivery" else name
            shown[track].append((row["ts_ns"], end, name))
    return shown


def blamed_by(run: Looked) -> dict[str, list[tuple[int, int, str]]]:
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for row in run.blamed.intervals.to_dicts():
        if row["rank"] == run.session.rank:
            cause = "batch" if row["cause"] in IN_BATCH else row["cause"]
            found[row["request"]].append((row["from_ns"], row["to_ns"], cause))
    return found


def at_of(spans: list[tuple[int, int, str]], ts_ns: int) -> str:
    """What holds at a time; a batch before what it was in beside it."""
    shown = {name for first, last, name in spans if first <= ts_ns < last}
    return "batch" if "batch" in shown else "".join(sorted(shown)[:1])


def expected(queried: str) -> tuple[str, ...]:
    """What blame may say of a request that is in a state."""
    match queried:
        case "batch":
            return ("batch", "")
        case "preempted":
            return ("preempted",)
        case "front-end":
            return ("front-end", "delivery")
        case "waiting":
            return ("no-blocks", "no-seat", "no-budget", "chunk", "bucket", "head", "step", "other",
                    "parked", "idle", "unknown", *WHAT_BLOCKS)  # fmt: skip
        case "out":
            return ("no-blocks", "no-budget", "chunk", "phase", "other", "parked", "idle",
                    "unknown", "step", "bucket", "head", "no-seat", *WHAT_BLOCKS)  # fmt: skip
        case _:
            return ("",)


# ── tests ────────────────────────────────────────────────────────────────────────────────────────


def test_cores_of_scenarios_do_at_any_moment_what_a_query_says(scenario_run: Looked) -> None:
    check_cores(scenario_run)


def test_ranges_of_scenarios_are_as_busy_as_a_query_says(scenario_run: Looked) -> None:
    check_ranges(scenario_run)


def test_requests_of_scenarios_are_at_any_moment_where_a_query_says(scenario_run: Looked) -> None:
    check_requests(scenario_run)


@slow
def test_cores_of_real_files_do_at_any_moment_what_a_query_says(real_runs: list[Looked]) -> None:
    assert sum(check_cores(run) for run in real_runs) > 1000


@slow
def test_ranges_of_real_files_are_as_busy_as_a_query_says(real_runs: list[Looked]) -> None:
    assert sum(check_ranges(run) for run in real_runs) > 1000


@slow
def test_requests_of_real_files_are_at_any_moment_where_a_query_says(
    real_runs: list[Looked],
) -> None:
    assert sum(check_requests(run) for run in real_runs if not is_workload(run)) > 100


def test_requests_of_a_sample_are_at_any_moment_where_a_query_says(sample_run: Looked) -> None:
    assert check_requests(sample_run) > 1


def is_workload(run: Looked) -> bool:
    """Lists of arrivals have no states: see `test_blame`."""
    return run.session.state.waiting is None
