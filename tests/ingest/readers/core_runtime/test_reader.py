"""Logs of the core-group runtime: dispatches, stall reports, host spans; whole, torn, or real."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.core_runtime.decode import MALFORMED, RuntimeLog
from stepscope.ingest.readers.core_runtime.reader import RuntimeLogReader
from stepscope.ingest.readers.core_runtime.tables import LIMIT_GIVEN, UNLISTED
from stepscope.ingest.readers.text.split import NO_END, Lines
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import open_log, report_of
from tests.ingest.readers.core_runtime.logs import (
    DEADLOCK,
    HOST_LINES,
    REPORT,
    RING,
    RUNTIME_LOGS,
    STALLED,
    STARTS,
    WHOLE,
    WRONG_CORE,
    dispatched,
    span,
    timed_out,
)
from tests.looped import looped
from tests.tiers import slow

ORDER = 1_000


def test_a_dispatch_is_a_block_on_a_core_with_its_slot_group_and_thread(tmp_path: Path) -> None:
    trace = open_log(tmp_path, WHOLE)

    columns = ("task", "block", "shape", "group", "core", "core_kind", "slot", "thread")
    found = trace.core_spans.sort("dispatch_ns").select(columns).collect().rows()
    assert found == [
        (RING, 0, "AIC", 0, 0, "AIC", "running", 0),
        (RING, 1, "AIC", 0, 0, "AIC", "pending", 0),
        (RING + 1, 0, "AIV", 0, 3, "AIV1", "running", 0),
        (RING, 2, "AIC", 0, 0, "AIC", "pending", 0),
        (RING + 2, 0, "MIX", 1, 1, "AIC", "running", 0),
        (RING + 2, 0, "MIX", 1, 4, "AIV0", "running", 0),
        (RING + 2, 0, "MIX", 1, 5, "AIV1", "running", 0),
        (RING + 3, 0, "AIV", 0, 3, "AIV1", "running", 0),
    ]


def test_blocks_end_where_later_dispatches_to_their_core_say_that_they_had(tmp_path: Path) -> None:
    trace = open_log(tmp_path, WHOLE)

    spans = trace.core_spans.sort("dispatch_ns").collect()
    lines = spans.select("core", "dispatch_ns", "ts_ns", "end_ns").rows()
    # One that is pending tells that the one pending before it runs; an idle core, that all ended.
    assert [tuple(n if i == 0 else n // ORDER for i, n in enumerate(row)) for row in lines] == [
        (0, 1, 1, 4), (0, 2, 4, 9), (3, 3, 3, 8), (0, 4, 9, 9),
        (1, 5, 5, 9), (4, 6, 6, 9), (5, 7, 7, 9), (3, 8, 8, 9),
    ]  # fmt: skip


def test_lines_without_a_time_are_in_order_and_said_to_be_no_more(tmp_path: Path) -> None:
    trace = open_log(tmp_path, WHOLE)

    report = report_of(trace)
    assert trace.manifest.tables["core_spans"] == "ordered"
    assert trace.manifest.clock.kind == "none"
    assert report.inferred["times from the position of the line"] == 10
    assert any("distances mean nothing" in note for note in report.notes)


def test_tasks_that_ran_to_their_end_are_over(tmp_path: Path) -> None:
    trace = open_log(tmp_path, WHOLE)

    assert rows(trace, "tasks", "name", "shape", "core_mask", "num_blocks", "outcome") == [
        ("kernel 0 r1 t0", "AIC", 1, 3, "run"),
        ("kernel 4 r1 t1", "AIV", 2, 1, "run"),
        ("kernel 1+2+3 r1 t2", "MIX", 7, 1, "run"),
        ("kernel 4 r1 t3", "AIV", 2, 1, "run"),
    ]
    assert "run 1: 4 of 4 tasks over" in report_of(trace).notes


def test_two_runs_in_one_log_do_not_share_tasks(tmp_path: Path) -> None:
    trace = open_log(tmp_path, WHOLE + WHOLE)

    tasks = rows(trace, "tasks", "step", "task")
    assert len({task for _, task in tasks}) == 8
    assert [step for step, _ in tasks] == [1] * 4 + [2] * 4


def test_the_host_says_when_and_its_anchor_from_when(tmp_path: Path) -> None:
    trace = open_log(tmp_path, STALLED)

    assert trace.manifest.clock.kind == "profiler"
    assert trace.manifest.clock.epoch_ns == 1_700_000_000_000_000_000
    spans = trace.spans.filter(category="STRACE").select("name", "ts_ns", "dur_ns").collect()
    assert spans.rows() == [
        ("chip.run", 2550, 5_000_100_000),
        ("chip.run.bind", 2600, 1000),
        ("chip.run.runner_run", 10_000, 5_000_000_000),
    ]
    assert rows(trace, "counters", "name", "unit", "value")[0] == ("arena_setup", "ms", 25.0)
    assert trace.manifest.config["rings"] == {"task_window": [4, 8], "heap": [64, 64]}


def test_a_run_is_a_step_and_the_device_s_lines_are_within_it(tmp_path: Path) -> None:
    trace = open_log(tmp_path, STALLED)

    assert rows(trace, "steps", "step", "ts_ns", "dur_ns", "executed_path", "tag") == [
        (1, 10_000, 5_000_000_000, "S1:running-stalled", "SCHEDULER_TIMEOUT")
    ]
    times = rows(trace, "core_spans", "ts_ns")
    assert min(times) > 10_000
    assert max(times) < 5_000_010_000


def test_what_a_stall_report_names_as_running_never_ended(tmp_path: Path) -> None:
    trace = open_log(tmp_path, STALLED)

    spans = trace.core_spans.sort("dispatch_ns").select("task", "core", "end_ns").collect()
    assert [(task - RING, core, end is None) for task, core, end in spans.rows()] == [
        (0, 1, False), (2, 1, True), (2, 4, True), (2, 5, True),
    ]  # fmt: skip
    outcomes = rows(trace, "tasks", "name", "outcome")
    assert outcomes == [
        ("kernel 0 r1 t0", "run"), ("kernel 1+2+3 r1 t2", "pending"),
        ("kernel 7 r1 t4", "pending"), ("kernel 4 r1 t5", "pending"),
    ]  # fmt: skip
    assert trace.manifest.tables["tasks"] == "partial"


def test_what_never_began_and_what_waits_are_decisions(tmp_path: Path) -> None:
    trace = open_log(tmp_path, STALLED)

    columns = ("subject", "verdict", "resource", "needed", "available", "holder")
    assert rows(trace, "decisions", *columns) == [
        (str(RING + 4), "deferred", "core 1", None, None, str(RING + 2)),
        (str(RING + 5), "deferred", "tasks before it that are over", 3, 1, None),
    ]


def test_blocks_of_an_idle_core_ended_by_the_first_line_of_the_stall_report(tmp_path: Path) -> None:
    dispatch = dispatched("aic", RING, "0,-1,-1", "0/1", (0, 0))

    trace = open_log(tmp_path, STARTS + dispatch + REPORT)

    (end_ns,) = trace.core_spans.filter(core=0).select("end_ns").collect().to_series()
    assert end_ns // ORDER == (STARTS + dispatch).count("\n")


def test_a_log_that_begins_within_a_stall_report_dates_it_from_its_first_line() -> None:
    log = RuntimeLog()

    for line in REPORT.splitlines():
        log.take(line)

    assert log.run.report_line == 0


def test_a_part_on_a_core_of_another_kind_has_no_group(tmp_path: Path) -> None:
    trace = open_log(tmp_path, WRONG_CORE)

    columns = ("core", "core_kind", "group", "block", "end_ns")
    assert rows(trace, "core_spans", *columns) == [(3, "AIC", None, None, None)]
    assert trace.manifest.config["device"]["core_types"] == ["aic"] * 2 + ["aiv"] * 4


def test_the_task_that_a_full_ring_refused_was_not_submitted(tmp_path: Path) -> None:
    trace = open_log(tmp_path, DEADLOCK)

    tasks = rows(trace, "tasks", "task", "ts_ns", "outcome")
    assert [(task - RING, ts is None, outcome) for task, ts, outcome in tasks] == [
        (0, False, "pending"), (1, False, "pending"), (2, False, "pending"), (3, True, "pending"),
    ]  # fmt: skip
    refused = rows(trace, "decisions", "subject", "verdict", "resource", "available")
    assert refused == [(str(RING + 3), "rejected", "task window of ring 1", 0)]
    assert ("ring 1", "task_window size", 4.0) in rows(trace, "counters", "track", "name", "value")


@looped("name", RUNTIME_LOGS)
def test_every_line_is_read_or_counted(tmp_path: Path, name: str) -> None:
    noise = "Traceback (most recent call last):\n[STALL thread=0 idle_iterations=1] nonsense\n"

    trace = open_log(tmp_path, noise + RUNTIME_LOGS[name] + "F" + HOST_LINES + "=== FAILURES ===\n")

    report = report_of(trace)
    lines = (noise + RUNTIME_LOGS[name] + HOST_LINES).count("\n") + 1
    assert sum(report.read.values()) + sum(report.skipped.values()) == lines


def test_a_number_at_the_end_of_a_torn_line_is_not_believed(tmp_path: Path) -> None:
    whole = span("chip.run.bind", 2600, 1000)
    torn = open_log(tmp_path, whole + span("chip.run.runner_run", 9000, 123_456)[:-4])

    assert rows(torn, "spans", "name") == ["chip.run.bind"]
    assert report_of(torn).skipped == {MALFORMED: 1}
    assert report_of(torn).repaired == {NO_END: 1}


def test_a_log_that_is_torn_behind_a_dispatch_does_not_say_that_it_ended(tmp_path: Path) -> None:
    torn = WHOLE[: WHOLE.rindex("[INFO]")]

    trace = open_log(tmp_path, torn)

    ends = trace.core_spans.sort("dispatch_ns").select("core", "end_ns").collect().rows()
    assert [core for core, end in ends if end is None] == [0, 1, 4, 5, 3]
    assert rows(trace, "decisions", "subject") == [str(RING)]


def test_sizes_of_rings_that_are_torn_are_no_error(tmp_path: Path) -> None:
    trace = open_log(tmp_path, STALLED.replace("heap=[64, 64]", "heap=[6 64, ]"))

    assert trace.manifest.config["rings"]["heap"] == [6, 64]


def test_lines_up_to_the_limit_are_kept_and_the_option_is_named(tmp_path: Path) -> None:
    file = tmp_path / "device.log"
    file.write_text(WHOLE)

    trace = Trace.open(file, limits=Limits(rows=5))

    assert not trace.manifest.closed
    note = "more than 5 lines (--max rows=N raises it); all lines before are kept"
    assert note in report_of(trace).notes


@pytest.mark.parametrize("name", ["stalled", "deadlock"])
def test_cut_anywhere_all_whole_lines_are_kept(name: str) -> None:
    content = RUNTIME_LOGS[name].encode()

    whole = RuntimeLog()
    for length in range(len(content)):
        if content[:length].endswith(b"\n"):
            whole.take(content[:length].splitlines()[-1].decode())
        torn = RuntimeLog()
        for line, _ in Lines([content[:length]]):
            torn.take(line.decode())
        assert not whole.read - torn.read
        for kind in ("spans", "dispatches", "tasks", "running", "counters"):
            known = getattr(whole, kind)
            assert getattr(torn, kind)[: len(known)] == known


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    content = draw(st.sampled_from([text.encode() for text in RUNTIME_LOGS.values()]))
    for _ in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, len(content)))
        junk = draw(st.sampled_from([b"", b"\n", b"9" * 30, b"-1", b"\0", b"\xff", b"(", b"99999"]))
        content = content[:start] + junk + content[start + draw(st.integers(0, 12)) :]
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@slow
@settings(max_examples=150)
@given(content=mutated())
def test_mutated_logs_raise_nothing_but_our_errors(folder: Path, content: bytes) -> None:
    file = folder / "hostile.log"
    file.write_bytes(content)
    try:
        tables, manifest = RuntimeLogReader().read(file, None)
    except TraceError as error:
        assert str(error)  # noqa: PT017 - any TraceError will do
        return
    trace = Trace.from_tables(tables, manifest)
    for name in tables:
        trace.table(name).collect()
    lines = len([line for line in content.splitlines() if line])
    assert sum(report_of(trace).read.values()) + sum(report_of(trace).skipped.values()) == lines


@slow
def test_of_tasks_that_a_log_only_counts_no_more_are_listed_than_a_ring_holds(
    tmp_path: Path,
) -> None:
    run = (
        "[INFO] x: Thread 0: PTO2 dispatch starting with 3 cores\n"
        "[ERROR] x: Scope Deadlock Detected! (ring 1)\n"
        "[ERROR] x: Tasks in current scope (999999999) >= task_window_size (9)\n"
    )

    trace = open_log(tmp_path, run * 3)

    assert trace.num_rows("tasks") == LIMIT_GIVEN + 3
    assert report_of(trace).skipped[UNLISTED] == 3 * 999_999_999 - LIMIT_GIVEN
    assert rows(trace, "decisions", "subject")[0] == str(RING + 999_999_999)


def test_the_hosts_word_on_a_stall_is_read_in_either_spelling(tmp_path: Path) -> None:
    for by in ("", "simpler ", "PTO2 ", "[runtime_maker.cpp:1019] PTO2 "):
        trace = open_log(tmp_path, timed_out(by=by))
        assert trace.tasks.select("step", "task", "name", "shape", "outcome").collect().rows() == [
            (1, 2 * RING + 35, "task r2 t35", None, "pending")
        ]
        assert trace.core_spans.select("task", "core", "core_kind", "end_ns").collect().rows() == [
            (2 * RING + 35, 26, None, None)
        ]
        (step,) = trace.steps.collect().to_dicts()
        assert (step["executed_path"], step["tag"]) == ("S1:running-stalled", "SCHEDULER_TIMEOUT")
        assert step["dur_ns"] is None
        assert "run 1: SCHEDULER_TIMEOUT, S1:running-stalled, 307 of 311 tasks over, " in "".join(
            report_of(trace).notes
        )


def test_each_verdict_of_the_host_is_of_a_run_of_its_own(tmp_path: Path) -> None:
    trace = open_log(tmp_path, timed_out() + timed_out(task=RING + 1, core=3))
    assert trace.steps.collect()["step"].to_list() == [1, 2]
    assert trace.core_spans.select("step", "core").collect().rows() == [(1, 26), (2, 3)]
    timeouts = "".join(line for line in (timed_out() * 2).splitlines(True) if "timeout" in line)
    assert (
        open_log(tmp_path, timeouts).steps.collect()["executed_path"].to_list()
        == ["S1:running-stalled"] * 2
    )


def test_a_task_that_the_device_reports_is_not_listed_again_for_the_host(tmp_path: Path) -> None:
    log = STALLED + timed_out(task=RING + 2, core=1)
    before, after = open_log(tmp_path, STALLED), open_log(tmp_path, log)
    assert after.num_rows("tasks") == before.num_rows("tasks")
    assert after.num_rows("core_spans") == before.num_rows("core_spans")


def test_the_host_alone_names_other_failures_by_their_code(tmp_path: Path) -> None:
    log = "[ERROR] f: PTO2 runtime failed: orch_error_code=4 sched_error_code=0 runtime_status=-4\n"
    (step,) = open_log(tmp_path, log).steps.collect().to_dicts()
    assert step["tag"] == "DEP_POOL_OVERFLOW"


def test_the_hosts_word_on_a_stall_cut_off_anywhere_is_read_or_counted(tmp_path: Path) -> None:
    text = timed_out()
    for end in range(text.index("0 sched_error_code"), len(text)):
        trace = open_log(tmp_path, text[:end])
        assert trace.num_rows("tasks") <= 1
