"""What rules of the recording itself say of recordings, against their rows one by one."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.analyzers.rules.trc.trc002_clock_backwards import ClockBackwards
from stepscope.analyzers.rules.trc.trc006_requests_left_open import RequestsLeftOpen
from tests.analyzers.samples.conftest import Sample, copied
from tests.analyzers.samples.raw_trace import ENTERS, backwards

TRIED = frozenset({"TRC001", "TRC002", "TRC003", "TRC005", "TRC006"})
BACK_NS = 50_000_000
TABLES = ("lifecycle", "batch_rows", "outputs", "steps", "allocations", "decisions")


def test_trc001_and_trc003_find_nothing_missing_or_inferred_in_what_was_recorded_whole(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm:
        manifest, steps = sample.raw.manifest, sample.raw.steps

        assert (manifest["closed"], manifest["dropped"]) == (True, {})
        assert set(manifest["tables"].values()) == {"complete"}
        assert {row["inferred"] for row in steps} == {None}
        assert [row["step"] for row in steps] == list(range(1, len(steps) + 1))
        assert (sample.checked.counts["TRC001"], sample.checked.counts["TRC003"]) == (0, 0)


def test_trc002_finds_by_how_much_a_step_began_before_the_one_before_it(
    of_vllm: list[Sample], crowd: Sample, tmp_path: Path
) -> None:
    for sample in of_vllm:
        raw = sample.raw
        steps = sorted(raw.steps, key=lambda row: int(row["step"]))
        came = {request: row["ts_ns"] for request, row in raw.arrivals.items()}

        assert backwards([row["ts_ns"] for row in steps]) == []
        assert all(row["ts_ns"] > came[request] for request, row in raw.ends.items())
        assert sample.checked.counts["TRC002"] == 0

    late = copied(crowd, tmp_path)
    (file,) = (late.folder / "steps").rglob("*.parquet")
    steps_again = pl.read_parquet(file, hive_partitioning=False)
    back_ns = pl.when(pl.col("step") >= 100).then(BACK_NS).otherwise(0)
    steps_again.with_columns(pl.col("ts_ns") - back_ns).write_parquet(file)
    times = [row["ts_ns"] for row in sorted(late.raw.steps, key=lambda row: int(row["step"]))]
    reached = [max(times[:place], default=at_ns) - at_ns for place, at_ns in enumerate(times)]
    behind = [each for each in reached if each > 0]

    (found,) = late.findings(ClockBackwards())

    assert (found.evidence["worst_back_ns"], found.count) == (max(behind), len(behind))
    assert (found.step, found.evidence["worst"]) == (100, "step 100")


def test_trc005_finds_a_token_for_each_row_of_a_step_that_decodes(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm:
        raw = sample.raw
        decodes = {
            step: [row["num_tokens"] for row in rows if row["phase"] == "decode"]
            for step, rows in raw.batches.items()
        }
        labelled = {row["step"]: row["num_decode_tokens"] for row in raw.steps}

        assert {step: sum(rows) for step, rows in decodes.items()} == {
            step: num for step, num in labelled.items() if step in decodes
        }
        assert {num for rows in decodes.values() for num in rows} == {1}
        assert sample.checked.counts["TRC005"] == 0


def test_trc006_finds_who_was_open_when_the_recording_was_stopped(
    of_vllm: list[Sample], crowd: Sample, tmp_path: Path
) -> None:
    for sample in of_vllm:
        assert set(sample.raw.ends) == set(sample.raw.arrivals)
        assert sample.checked.counts["TRC006"] == 0

    last = crowd.raw.steps[99]
    half = copied(crowd, tmp_path, only=dict.fromkeys(TABLES, pl.col("ts_ns") <= last["ts_ns"]))
    raw = half.raw
    opened = set(raw.arrivals) - set(raw.ends)
    batch = {row["request"] for row in raw.batches[last["step"]]} & opened
    moves = {request: raw.history(request)[-1]["event"] for request in opened - batch}
    waiting = [request for request, event in moves.items() if event in (*ENTERS, "receive")]

    (found,) = half.findings(RequestsLeftOpen())

    assert (found.evidence["requests"], found.evidence["requests that came"]) == (len(opened), 20)
    assert (found.evidence["in the last batch"], found.evidence["waiting"]) == (
        len(batch),
        len(waiting),
    )
    assert found.evidence["running, in no batch"] == len(opened) - len(batch) - len(waiting) == 0
    assert (found.step, found.request) == (
        100,
        next(each for each in raw.arrivals if each in opened),
    )
