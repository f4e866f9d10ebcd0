"""Logs of llama.cpp: slots and their batches; and of mistral.rs."""

from __future__ import annotations

from pathlib import Path

from tests.ingest.kineto_files import rows
from tests.ingest.log_files import (
    COUNTS,
    LLAMACPP,
    MISTRALRS,
    at,
    open_log,
    report_of,
)


def test_slots_of_one_batch_of_llamacpp_are_one_step_and_the_rest_of_it_decodes(
    tmp_path: Path,
) -> None:
    trace = open_log(tmp_path, LLAMACPP)

    assert rows(trace, "steps", *COUNTS) == [
        (1, "prefill", 1, 512, 0, 0),
        (2, "mixed", 2, 92, None, 1),
    ]
    assert rows(trace, "steps", "ts_ns") == [100_300_000, 200_200_000]
    assert trace.manifest.clock.kind == "profiler"


def test_prompts_of_llamacpp_are_rows_that_go_on_where_they_were(tmp_path: Path) -> None:
    trace = open_log(tmp_path, LLAMACPP)

    columns = ("step", "request", "slot", "num_tokens", "num_computed", "prompt_len")
    assert rows(trace, "batch_rows", *columns, "is_final_chunk") == [
        (1, "task 0", 3, 512, 0, 600, False),
        (2, "task 5", 2, 4, 16, None, True),
        (2, "task 0", 3, 88, 512, 600, True),
    ]


def test_slots_of_llamacpp_change_hands(tmp_path: Path) -> None:
    trace = open_log(tmp_path, LLAMACPP)

    assert rows(trace, "allocations", "id", "op", "owner") == [
        (3, "claim", "task 0"), (2, "claim", "task 5"), (3, "release", "task 0"),
    ]  # fmt: skip
    assert rows(trace, "lifecycle", "request", "event", "num_generated") == [
        ("task 0", "admit", None), ("task 5", "admit", None), ("task 0", "finish", 509),
    ]  # fmt: skip


def test_timings_of_llamacpp_are_counters_of_their_slot(tmp_path: Path) -> None:
    counters = rows(open_log(tmp_path, LLAMACPP), "counters", "track", "name", "value", "unit")

    assert ("slot 3", "tokens per second", 1133.55, None) in counters
    assert ("slot 3", "n_decoded", 508.0, None) in counters
    assert ("slot 3", "tg", 2.53, "t/s") in counters


def test_older_lines_of_llamacpp_call_their_numbers_otherwise(tmp_path: Path) -> None:
    head = "slot update_slots: id  0 | task 9 | "
    text = (
        f"{head}kv cache rm [7, end)\n"
        f"{head}prompt processing progress, n_past = 39, n_tokens = 32, progress = 0.500000\n"
        f"{head}prompt done, n_past = 39, n_tokens = 32\n"
    )

    trace = open_log(tmp_path, text)

    assert rows(trace, "batch_rows", "num_tokens", "num_computed", "is_final_chunk") == [
        (32, 7, True)
    ]
    assert trace.manifest.clock.kind == "virtual"


def test_a_slot_that_is_taken_again_was_left(tmp_path: Path) -> None:
    launch = "slot launch_slot_: id  0 | task {} | processing task\n"

    trace = open_log(tmp_path, launch.format(1) + launch.format(2))

    assert rows(trace, "allocations", "op", "owner") == [
        ("claim", "task 1"), ("release", "task 1"), ("claim", "task 2"),
    ]  # fmt: skip
    assert sum(report_of(trace).repaired.values()) == 1


def test_interval_lines_of_mistralrs_are_counters(tmp_path: Path) -> None:
    trace = open_log(tmp_path, MISTRALRS)

    second = at(2025, 7, 1, 10, 0, 5) + 250_000_000
    assert rows(trace, "counters", "ts_ns", "name", "value", "unit")[4:] == [
        (second, "Throughput", 20.0, "T/s"),
        (second, "Throughput prefill", 15.0, "T/s"),
        (second, "Throughput decode", 5.0, "T/s"),
        (second, "Prefix cache hitrate", 50.0, "%"),
        (second, "running", 3.0, None),
        (second, "waiting", 0.0, None),
    ]
    assert not trace.has("steps")
