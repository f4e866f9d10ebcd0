"""What the known bugs of core groups, and rings that are too small, do to a run."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.engine.faults import Fault, faults_of
from tests.engine.recorded_once import RecordedOnce
from tests.engine.scenarios.mix_runs import cached, run
from tests.looped import looped
from tests.tiers import slow


def test_shift_wrap_sends_the_23rd_group_of_a_thread_to_other_cores_and_hangs(
    recorded_once: RecordedOnce,
) -> None:
    trace = cached(recorded_once, "after", fault="mix-shift-wrap")

    lost = trace.core_spans.filter((pl.col("group") == 22) & (pl.col("shape") == "MIX")).collect()
    aic = lost.filter(pl.col("core_kind") == "AIC")
    assert set(aic["core"]) == {25}
    assert lost["end_ns"].null_count() == lost.height > 0
    (last,) = trace.steps.filter(pl.col("kind") == "decode").collect().to_dicts()
    assert last["executed_path"].startswith("stalled: ")
    assert last["dur_ns"] > 500_000_000


@slow
def test_shift_wrap_needs_23_groups_on_one_thread() -> None:
    fault = {"fault": "mix-shift-wrap", "threads": "3"}

    assert run("after", **fault).metrics == run("after", groups="24", threads="3").metrics


def test_a_stale_reservation_books_a_core_twice(recorded_once: RecordedOnce) -> None:
    trace = cached(recorded_once, "after", fault="stale-reservation")

    spans = trace.core_spans.sort("core", "ts_ns").collect()
    next_starts = pl.col("ts_ns").shift(-1).over("core")
    assert spans.filter(pl.col("end_ns") > next_starts).height > 0


def test_a_ring_that_loses_an_advance_fills_up_and_stalls(recorded_once: RecordedOnce) -> None:
    trace = cached(recorded_once, "after", fault="lost-ring-advance")

    path = trace.steps.collect()["executed_path"].to_list()[-1]
    assert "no progress for 500 ms; nothing is in flight" in path
    assert "pending" in trace.tasks.collect()["outcome"].to_list()


def test_a_slot_popped_twice_runs_blocks_twice_and_starts_tasks_before_their_time(
    recorded_once: RecordedOnce,
) -> None:
    trace = cached(recorded_once, "after", fault="pop-returns-consumed-slot")

    times = trace.core_spans.group_by("task", "block", "core_kind").len().collect()["len"]
    assert times.max() != times.min() == 1
    ends = trace.core_spans.group_by(from_task="task").agg(ended=pl.col("end_ns").max())
    starts = trace.core_spans.group_by(to_task="task").agg(began=pl.col("ts_ns").min())
    kept = trace.task_edges.join(ends, on="from_task").join(starts, on="to_task").collect()
    assert kept.filter(pl.col("ended") > pl.col("began")).height > 0


def test_a_lost_completion_leaves_a_task_pending_whose_blocks_have_ended(
    recorded_once: RecordedOnce,
) -> None:
    trace = cached(recorded_once, "after", fault="deferred-completion-lost")

    pending = trace.tasks.filter(outcome="pending").collect()
    ran = trace.core_spans.filter(pl.col("end_ns").is_not_null()).collect()
    assert pending.filter(pl.col("task").is_in(ran["task"].implode())).height > 0
    assert pending["ready_ns"].null_count() > 0
    path = trace.steps.collect()["executed_path"].to_list()[-1]
    assert path.startswith("stalled: ")
    assert path.endswith("no progress for 500 ms; nothing is in flight")


def test_a_scope_that_outgrows_the_task_ring_ends_the_run_at_once_and_says_why(
    recorded_once: RecordedOnce,
) -> None:
    trace = cached(recorded_once, "after", task_slots="5")

    (stalled,) = trace.steps.filter(pl.col("kind") == "decode").collect().to_dicts()
    assert stalled["executed_path"].startswith("stalled: scope deadlock: act2 e0 L0 b0 has to wait")
    assert stalled["dur_ns"] < 1_000_000
    ends = trace.lifecycle.filter(event="abort").collect()
    assert ends.height == 12
    assert ends["cause"].str.starts_with("device: scope deadlock").all()


@slow
@pytest.mark.parametrize("settings", [{"heap_kib": "4096"}, {"dep_entries": "64"}])
def test_a_small_ring_slows_the_device_down(settings: dict[str, str]) -> None:
    small, plain = run("after", **settings).metrics, run("after").metrics
    assert float(small["makespan_us"]) > 1.3 * float(plain["makespan_us"])


@slow
@looped("fault", faults_of("mix-admission"))
def test_a_fault_is_off_unless_it_is_asked_for(fault: Fault) -> None:
    faulty, plain = run("after", fault=fault.name), run("after", **fault.settings)
    assert faulty.metrics != plain.metrics
