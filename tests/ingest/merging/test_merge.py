"""A recording and a profile as one trace: which steps are one, and what each launched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.check.run import check
from stepscope.ingest.errors import TraceError
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.merging.merge import merge
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.merging.pairs import LENGTH_NS, STEP_NS, TOKENS, UNIX_NS, profiled, recorded
from tests.tiers import slow

REAL = ROOT.parent / "shared" / "data" / "kineto" / "vllm_prefilldecode_mi300.json.gz"


def test_a_recorded_step_shows_its_queue_and_what_it_launched(tmp_path: Path) -> None:
    trace, (found,) = merge(recorded(tmp_path), profiled(tmp_path))

    columns = ("step", "num_waiting", "ts_ns", "gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns")
    assert rows(trace, "steps", *columns)[:2] == [
        (10, 0, UNIX_NS, UNIX_NS + 200_000, 500_000, 450_000),
        (11, 1, UNIX_NS + STEP_NS, UNIX_NS + STEP_NS + 200_000, 500_000, 450_000),
    ]
    assert (found.num_steps, found.first_step, found.last_step) == (5, 10, 14)
    assert (found.moved_ns, found.most_ns) == (0, 0)
    assert (found.num_executed, found.num_assigned) == (10, 10)


def test_inferred_steps_are_dropped_and_recorded_ones_stay_as_they_are(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    trace, _ = merge(run, profiled(tmp_path))

    theirs = ("cpu_dur_ns", "gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns")
    kept = trace.steps.drop(theirs).collect()
    assert kept.equals(run.steps.drop(theirs).collect())
    assert kept["inferred"].null_count() == len(kept)


def test_a_batch_that_was_formed_ahead_began_to_run_with_its_tag(tmp_path: Path) -> None:
    run = recorded(tmp_path, ahead_ns=500_000)
    trace, (found,) = merge(run, profiled(tmp_path, late_us=-400.0))

    columns = ("ts_ns", "dur_ns", "cpu_dur_ns", "gpu_ts_ns")
    begun = UNIX_NS + STEP_NS - 300_000
    assert rows(trace, "steps", *columns)[1] == (
        begun, LENGTH_NS + 300_000, 300_000, begun + 100_000
    )  # fmt: skip
    assert (found.num_steps, found.most_ns) == (5, 0)
    assert rows(trace, "steps", "formed_ns") == rows(run, "steps", "formed_ns")


def test_what_is_launched_behind_the_tag_is_of_its_step_as_well(tmp_path: Path) -> None:
    trace, _ = merge(recorded(tmp_path), profiled(tmp_path))

    sampled = [step for name, step in rows(trace, "spans", "name", "step") if name == "argmax"]
    assert sampled == [10, 11, 12, 13, 14]


def test_a_profile_of_a_part_of_the_run_finds_its_place(tmp_path: Path) -> None:
    trace, (found,) = merge(recorded(tmp_path), profiled(tmp_path, TOKENS[2:4], at=2))

    assert (found.first_step, found.last_step) == (12, 13)
    assert rows(trace, "steps", "gpu_busy_ns") == [None, None, 450_000, 450_000, None]
    assert trace.manifest.tables["spans"] == "partial"


def test_steps_without_a_batch_are_passed_over(tmp_path: Path) -> None:
    with_idle = (64, 0, 2, 0, 17)
    _, (found,) = merge(recorded(tmp_path, with_idle), profiled(tmp_path, with_idle))

    assert (found.num_steps, found.last_step, found.most_ns) == (3, 14, 0)


def test_tokens_in_the_right_order_at_times_that_never_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="its steps lie"):
        merge(recorded(tmp_path, (64, 0, 2, 0, 17)), profiled(tmp_path, (64, 2, 17)))


def test_a_profile_that_began_before_the_recording_leaves_its_first_steps_out(
    tmp_path: Path,
) -> None:
    profile = profiled(tmp_path, (5, *TOKENS), at=-1)
    trace, (found,) = merge(recorded(tmp_path), profile)

    assert (found.num_steps, found.num_alone) == (5, 1)
    assert rows(trace, "spans", "step")[0] is None


def test_clocks_that_are_apart_are_moved_where_the_tokens_tell_the_steps(tmp_path: Path) -> None:
    trace, (found,) = merge(recorded(tmp_path), profiled(tmp_path, late_us=5_000.0))

    assert found.moved_ns == -(5_000_000 - (LENGTH_NS - 400_000))
    assert found.most_ns == 0
    assert rows(trace, "steps", "gpu_ts_ns")[0] == UNIX_NS + 200_000 + LENGTH_NS - 400_000
    assert "moved by -4.500 ms" in found.said()


def test_steps_that_are_all_alike_are_not_paired_by_a_clock_that_is_apart(tmp_path: Path) -> None:
    alike = (2,) * 5

    with pytest.raises(TraceError, match="does not fit the recording: its steps are"):
        merge(recorded(tmp_path, alike), profiled(tmp_path, alike, late_us=2_500_500.0))


def test_a_residual_is_told_in_the_median_and_at_most(tmp_path: Path) -> None:
    profile = profiled(tmp_path)
    late = pl.when(pl.col("step") == 3).then(pl.col("ts_ns") + 900_000).otherwise("ts_ns")
    profile = profile.replacing({"steps": profile.steps.with_columns(late)}, profile.manifest)
    _, (found,) = merge(recorded(tmp_path), profile)

    assert found.median_ns == 0
    assert found.most_ns > 0
    assert "at most 400.0 µs lie outside of them" in found.said()


def test_another_run_s_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not fit the recording") as refused:
        merge(recorded(tmp_path), profiled(tmp_path, (7, 7, 7)))
    assert "one process" in str(refused.value.todo)


def test_a_recording_without_unix_time_is_refused(tmp_path: Path) -> None:
    run = recorded(tmp_path, clock=ClockInfo("virtual"))

    with pytest.raises(TraceError, match="does not tell Unix time"):
        merge(run, profiled(tmp_path))


def test_a_profile_without_unix_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not say when it was"):
        merge(recorded(tmp_path), profiled(tmp_path, base_ns=0))


def test_two_profiles_are_refused_and_so_is_a_recording_after_a_profile(tmp_path: Path) -> None:
    run, profile = recorded(tmp_path), profiled(tmp_path)

    with pytest.raises(TraceError, match="its steps are inferred"):
        merge(profile, run)
    trace, _ = merge(run, profile)
    with pytest.raises(TraceError, match="merged into it already"):
        merge(trace, profile)


def test_a_profile_without_tags_is_refused(tmp_path: Path) -> None:
    profile = profiled(tmp_path)
    bare = profile.replacing({"steps": profile.steps.head(0)}, profile.manifest)
    bare._num_rows = {}

    with pytest.raises(TraceError, match="no step's tag is in the profile"):
        merge(recorded(tmp_path), bare)


@slow
def test_each_rank_has_its_own_profile(tmp_path: Path) -> None:
    recorded(tmp_path)
    run = recorded(tmp_path, (2, 2, 9), rank=1)
    folder = tmp_path / "profiles"
    folder.mkdir()
    profiled(folder, name="rank0.json")
    profiled(folder, (2, 2, 9), name="rank1.json", rank=1)
    trace, found = merge(Trace.open(run.path or ""), Trace.open(folder))

    assert [(each.rank, each.num_steps) for each in found] == [(0, 5), (1, 3)]
    assert rows(trace, "steps", "gpu_busy_ns") == [450_000] * 8


def test_a_worker_of_the_only_recorded_rank_has_its_steps(tmp_path: Path) -> None:
    trace, (found,) = merge(recorded(tmp_path), profiled(tmp_path, rank=3))

    assert (found.rank, found.of_rank) == (3, 0)
    assert trace.manifest.ranks == (0, 3)
    assert rows(trace, "spans", "rank", "step")[0] == (3, 10)


def test_a_rank_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    recorded(tmp_path)
    run = recorded(tmp_path, rank=1)

    with pytest.raises(TraceError, match="rank 5 of the profile was not recorded"):
        merge(Trace.open(run.path or ""), profiled(tmp_path, rank=5))


def test_spans_that_were_recorded_keep_their_numbers(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    own = pl.LazyFrame(
        {"rank": [0], "step": [10], "ts_ns": [UNIX_NS], "span": [41], "track": ["scheduler"],
         "name": ["schedule"]}
    )  # fmt: skip
    with_span = Trace.from_tables(
        {"steps": run.steps, "spans": own},
        replace(run.manifest, tables={"steps": "complete", "spans": "complete"}),
    )
    trace, _ = merge(with_span, profiled(tmp_path))

    numbers = rows(trace, "spans", "span")
    assert numbers[0] == 41
    assert min(numbers[1:]) == 42


def test_what_was_merged_is_saved_and_says_how_it_fits(tmp_path: Path) -> None:
    trace, (found,) = merge(recorded(tmp_path), profiled(tmp_path))
    save_trace(trace, tmp_path / "both.trace")
    opened = Trace.open(tmp_path / "both.trace")

    assert found.said() in report_of(opened).notes
    assert opened.manifest.config["merged"]["0"]["num_steps"] == 5
    assert rows(opened, "spans", "step") == rows(trace, "spans", "step")


def test_kernels_of_a_real_profile_are_of_the_steps_that_it_has_by_itself() -> None:
    if not REAL.exists():
        pytest.skip("the folder of real files, ../shared/data, is absent")
    profile = Trace.open(REAL)
    base_ns = UNIX_NS - profile.start_ns()
    clock = ClockInfo("profiler", base_ns)
    dated = profile.replacing({}, replace(profile.manifest, clock=clock))
    told = pl.col("step") + 100, pl.lit(None, pl.String).alias("inferred")
    empty = [pl.lit(None, pl.Int64).alias(name) for name in ("gpu_ts_ns", "gpu_dur_ns")]
    steps = profile.steps.with_columns(*told, *empty, ts_ns=pl.col("ts_ns") + base_ns)
    run = Trace.from_tables({"steps": steps}, replace(profile.manifest, clock=ClockInfo("wall")))
    trace, _ = merge(run, dated)

    of_both = pl.concat(
        [profile.spans.select("category", own="step"), trace.spans.select("step")],
        how="horizontal",
    ).filter(pl.col("category") == "kernel", pl.col("own").is_not_null())
    assert not of_both.filter(pl.col("own") + 100 != pl.col("step")).collect().height
    assert of_both.collect().height


def test_rules_on_a_recording_still_judge_it(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    trace, _ = merge(run, profiled(tmp_path))

    assert trace.manifest.is_recording
    assert set(check(trace).lacking) <= set(check(run).lacking)
