"""At random moments, what both fronts say of a step, and what tracks show, is what a query says.

The rows are fetched by `Trace.sql`, as `stepscope sql` does, and counted in plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dash import html
from dash.development.base_component import Component

from stepscope.analyzers.check.run import check
from stepscope.app.debug import Session
from stepscope.app.present.blocks import Heading
from stepscope.app.printable import plain
from stepscope.app.tui.pages.step_parts.step_blocks import left_blocks, right_blocks, step_line
from stepscope.app.tui.pages.step_parts.step_view import StepView, look_at_step
from stepscope.app.units import duration, moment
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.step import step_pane
from stepscope.app.web.view import View
from tests.app.both_fronts.looked import Looked, Row
from tests.app.both_fronts.test_same_everywhere import (
    Told,
    cores_at,
    is_workload,
    requests_of,
)
from tests.tiers import slow
from tests.traces import trace_of

Texts = list[list[str]]


# ── what a query says ────────────────────────────────────────────────────────────────────────────


def formed_steps(run: Looked) -> dict[int, int]:
    """When each step's batch was formed, by the number of the step."""
    formed: dict[int, int] = {}
    for query in (
        "select rank, step, min(ts_ns) as ts_ns from steps group by all",
        "select rank, step, min(ts_ns) as ts_ns from batch_rows group by all",
    ):
        formed |= {row["step"]: row["ts_ns"] for row in run.rows(query)}
    return formed


def queued(events: dict[str, Told], ts_ns: int) -> tuple[set[str], set[str]]:
    """Who waits and who runs by the events alone."""
    states = {request: Told(told.events, []).at(ts_ns) for request, told in events.items()}
    waiting = {request for request, state in states.items() if state in ("waiting", "preempted")}
    return waiting, {request for request, state in states.items() if state == "out"}


def has_queues(run: Looked) -> bool:
    return bool(run.rows("select rank from lifecycle limit 1")) and not is_workload(run)


# ── the web's step ───────────────────────────────────────────────────────────────────────────────


def sections(pane: Component) -> dict[str, Texts]:
    """Heading of each section of a pane, with the rows of its table or its list of tags."""
    found: dict[str, Texts] = {}
    heading = ""
    for part in walk(pane):
        if isinstance(part, html.H3):
            heading = said(part)
            found[heading] = []
        elif isinstance(part, html.Tr) and all(isinstance(td, html.Td) for td in part.children):
            found[heading].append([said(cell) for cell in part.children])
        elif isinstance(part, html.Span) and getattr(part, "className", "") == "tag":
            found[heading].append([said(part)])
    return found


def walk(part: Any) -> Iterator[Any]:
    if isinstance(part, Component):
        yield part
        yield from walk(getattr(part, "children", None))
    elif isinstance(part, list | tuple):
        for each in part:
            yield from walk(each)


def said(part: Component) -> str:
    return str(part.children)


def check_step_panes(run: Looked) -> int:
    """At the steps of random moments: its numbers, the batch, who was left out, queues, cores."""
    loaded = LoadedTrace(run.trace, check(run.trace, ()))
    formed, events = formed_steps(run), requests_of(run)
    by_step = {row["step"]: row for row in reversed(run.rows("select * from steps"))}
    seen = set()
    for ts_ns in run.moments():
        step = max(
            ((at, step) for step, at in formed.items() if at <= ts_ns), default=(None, None)
        )[1]
        if step is None or step not in loaded.steps or step in seen:
            continue
        seen.add(step)
        shown = sections(step_pane(loaded, View(step=step)))
        assert_header(run, dict(shown["step"]), by_step[step])
        batch = assert_batch(run, shown, step)
        if has_queues(run):
            assert_queues(shown, queued(events, formed[step]), batch, (run.trace.name, step))
        assert_cores(run, shown, formed[step])
    return len(seen)


def assert_header(run: Looked, shown: dict[str, str], row: Row) -> None:
    first = run.timeline.bounds[0]
    prefill, decode = row["num_prefill_tokens"], row["num_decode_tokens"]
    expected = {
        "kind": row["kind"],
        "began": moment(row["ts_ns"] - first, 1_000),
        "took": None if row["dur_ns"] is None else duration(row["dur_ns"]),
        "on the CPU": None if row["cpu_dur_ns"] is None else duration(row["cpu_dur_ns"]),
        "waiting": row["num_waiting"],
        "running": row["num_running"],
        "path": row["executed_path"],
    }
    for name, fact in expected.items():
        assert shown.get(name) == (None if fact is None else str(fact)), (run.trace.name, row)
    for number, kind in ((prefill, "prefill"), (decode, "decode")):
        told = shown.get("tokens", "")
        assert (f"{number:,} {kind}" in told) == (number is not None) if number else True, row
    if row["gpu_busy_ns"] is not None:
        assert f"busy for {duration(row['gpu_busy_ns'])}, from" in shown["on the GPU"]


def assert_batch(run: Looked, shown: dict[str, Texts], step: int) -> list[str]:
    rows = run.rows(f"select * from batch_rows where step = {step:d}")  # noqa: S608 - a number
    heading = next(name for name in shown if name.startswith("batch"))
    queried = Counter((plain(row["request"]), row["phase"], row["num_tokens"]) for row in rows)
    listed = Counter((row[1], row[2], int(row[3].replace(",", ""))) for row in shown[heading])
    assert listed == queried if len(rows) <= 200 else len(listed) <= 200, (run.trace.name, step)
    if rows:
        assert heading == f"batch of {len(rows):,}"
    return [row["request"] for row in rows]


def assert_queues(
    shown: dict[str, Texts], queues: tuple[set[str], set[str]], batch: list[str], where: object
) -> None:
    waiting, running = queues
    headings = " | ".join(shown)
    assert f"queue · {len(waiting):,} |" in headings, where
    assert f"running · {len(running):,} |" in headings, where
    left_out = [rows for name, rows in shown.items() if name.startswith("left out ")]
    if batch and len(waiting | running) < 200:
        absent = waiting | (running - set(batch))
        assert {row[0] for rows in left_out for row in rows} == set(map(plain, absent)), where
        assert f"left out {len(absent):,}" in shown, where


def assert_cores(run: Looked, shown: dict[str, Texts], ts_ns: int) -> None:
    if not run.blocks:
        return
    running, held = cores_at(run, ts_ns)
    heading, rows = next(each for each in shown.items() if each[0].startswith("cores running"))
    assert heading.startswith(f"cores running {len(running):,} of "), (run.trace.name, ts_ns)
    assert (f", held {len(held):,} " in heading) == bool(held)
    assert len(rows) == min(len(running | held), 60)


# ── the terminal's step ──────────────────────────────────────────────────────────────────────────


def check_step_pages(run: Looked) -> int:
    events, batches = requests_of(run), run.rows("select rank, step, request from batch_rows")
    by_step = {row["step"]: row for row in reversed(run.rows("select * from steps"))}
    for ts_ns in run.moments():
        view = look_at_step(run.session, run.session.moments.position(ts_ns), None)
        batch = [row["request"] for row in batches if row["step"] == view.position.step]
        where = (run.trace.name, ts_ns, view.position.step)
        shown = headings(view)
        if batch:
            assert f"batch of {len(batch):,}" in shown, where
        if has_queues(run):
            waiting, running = queued(events, ts_ns)
            assert f"waiting {len(waiting):,}" in shown, where
            assert f"running {len(running):,}" in shown, where
            if batch:
                assert f"left out {len(waiting | (running - set(batch))):,}" in shown, where
        assert_line(step_line(view), by_step.get(view.position.step, {}), where)
    return len(by_step)


def headings(view: StepView) -> list[str]:
    blocks = [*left_blocks(view, 80), *right_blocks(view, 80)]
    return [block.text for block in blocks if isinstance(block, Heading)]


def assert_line(line: str, row: Row, where: object) -> None:
    if not row:
        return
    assert row["kind"] is None or line.partition(" · ")[0] == row["kind"], where
    for kind in ("prefill", "decode"):
        number = row[f"num_{kind}_tokens"]
        assert not number or f"{number:,} {kind}" in line, where


# ── tests ────────────────────────────────────────────────────────────────────────────────────────


@slow
def test_the_webs_step_of_scenarios_says_what_a_query_says(scenario_run: Looked) -> None:
    assert check_step_panes(scenario_run)


def test_the_terminals_step_of_scenarios_says_what_a_query_says(scenario_run: Looked) -> None:
    assert check_step_pages(scenario_run)


@slow
def test_the_webs_step_of_real_files_says_what_a_query_says(real_runs: list[Looked]) -> None:
    assert sum(check_step_panes(run) for run in real_runs) > 100


@slow
def test_the_terminals_step_of_real_files_says_what_a_query_says(real_runs: list[Looked]) -> None:
    assert sum(check_step_pages(run) for run in real_runs) > 100


@slow
def test_steps_of_profiles_say_in_both_fronts_what_a_query_says(profiles: list[Looked]) -> None:
    assert sum(check_step_panes(run) for run in profiles) > 50
    assert sum(check_step_pages(run) for run in profiles) > 100


@slow
def test_steps_of_the_samples_say_in_both_fronts_what_a_query_says(
    sample_profiles: list[Looked], sample_run: Looked
) -> None:
    runs = [*sample_profiles, sample_run]
    assert sum(check_step_panes(run) for run in runs) > 10
    assert sum(check_step_pages(run) for run in runs) > 10


@slow
def test_a_step_that_is_known_by_its_batch_alone_is_a_step_in_both_fronts() -> None:
    steps = [{"step": 1, "ts_ns": 100, "kind": "prefill", "rank": 1}]
    row = {"step": 4, "request": "a", "phase": "prefill", "num_tokens": 9, "rank": 1}
    rows = [{**row, "ts_ns": 120}, {**row, "request": "b", "ts_ns": 120}]
    for trace in (trace_of(steps=steps, batch_rows=rows), trace_of(batch_rows=rows)):
        run, loaded = Looked(trace), LoadedTrace(trace, check(trace, ()))

        assert loaded.steps == run.session.moments.steps
        assert "batch of 2" in sections(step_pane(loaded, View(step=4)))
        view = look_at_step(run.session, run.session.moments.position(120), None)
        assert "batch of 2" in headings(view)


def test_a_line_about_a_step_gives_no_budget_to_some_of_its_tokens() -> None:
    step = {"step": 1, "ts_ns": 1, "kind": "mixed", "num_decode_tokens": 5, "token_budget": 8}
    session = Session(trace_of(steps=[step]))

    line = step_line(look_at_step(session, session.position, None))

    assert line == "mixed · tokens: 5 decode, prefill unknown, budget 8"
