"""Numbers in logs that no column can hold, or that are none: the line stays, the number goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.ingest.readers.text.collect import TOO_LARGE
from stepscope.ingest.times import FAR_NS
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import STATISTICS, TRTLLM, TTXLA_SCHEDULER, open_log, report_of

ITERATION = (
    "Iteration({}): 2 context requests, 9 context tokens, 0 generation requests, 0 generation "
    "tokens, iteration elapsed time: 39000000000.0 ms\n"
)


def test_a_sum_that_no_column_can_hold_is_unknown_and_counted(tmp_path: Path) -> None:
    most = {"prefill_new": 2**31 - 1, "running_scheduled": 2**31 - 1, "decode_gated": True}
    line = json.dumps(json.loads(TTXLA_SCHEDULER.partition("\n")[0]) | most)

    trace = open_log(tmp_path, line)

    assert rows(trace, "steps", "kind", "num_prefill_reqs") == [("prefill", None)]
    assert report_of(trace).repaired[TOO_LARGE] == 1


def test_more_requests_than_a_column_can_hold_are_unknown(tmp_path: Path) -> None:
    line = TRTLLM.replace("num_scheduled_requests: 3", "num_scheduled_requests: 99999999999")
    line = line.replace("'num_generation_tokens': 2", "'num_generation_tokens': 999999999999")

    assert rows(open_log(tmp_path, line), "steps", "num_decode_reqs")[0] is None


def test_steps_that_would_go_on_for_ever_end_where_times_do(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "".join(map(ITERATION.format, range(100))))

    times = rows(trace, "steps", "ts_ns")
    assert len(times) == 100
    assert times == sorted(times)
    assert FAR_NS - 10**9 < times[-1] < FAR_NS + 10**9


def test_a_prompt_of_more_tokens_than_can_be_counted_is_not_believed(tmp_path: Path) -> None:
    slot = "slot update_slots: id  3 | task 0 | "
    told = f"{slot}new prompt, n_ctx_slot = 64, n_keep = 0, task.n_tokens = 9e300\n"
    done = f"{slot}prompt processing done, n_tokens = 133, batch.n_tokens = 4\n"

    assert rows(open_log(tmp_path, told + done), "batch_rows", "prompt_len") == []


def test_a_list_of_what_are_no_numbers_tells_nothing_of_its_requests(tmp_path: Path) -> None:
    said = "[atom 15:31:09] Scheduled prefill batch: 2 reqs, 30 new tokens "

    trace = open_log(tmp_path, f"{said}(cached: [0 1, 16], new: [10 2, 20]), req_ids: (1, 2)\n")

    assert rows(trace, "steps", "num_prefill_tokens") == [30]
    assert not trace.has("batch_rows")


@pytest.mark.parametrize("text", [r"\ud800", r"\udc00 x", r"\ud83d\ude00"])
def test_statistics_with_half_a_letter_in_them_are_read(tmp_path: Path, text: str) -> None:
    said = STATISTICS.splitlines()[0].replace('{"iter"', f'{{"about": "{text}", "iter"')

    trace = open_log(tmp_path, json.dumps([json.loads(said)], indent=1))

    assert rows(trace, "steps", "step", "num_waiting") == [(5, 4)]


@pytest.mark.parametrize("stamp", ["", "[05/20/2026-23:24:44] [TRT-LLM] [I] "])
def test_lines_behind_a_stamp_in_brackets_are_read_beside_statistics(
    tmp_path: Path, stamp: str
) -> None:
    statistics = "".join(f"{stamp}{line}\n" for line in STATISTICS.splitlines())
    trace = open_log(tmp_path, TRTLLM + statistics)

    assert sorted(rows(trace, "steps", "step")) == [1, 2, 5, 6]


@pytest.mark.parametrize("line", ["Registering Node[0]", "Running Instance[0]: none yet"])
def test_a_line_that_only_looks_like_a_simulator_s_makes_no_log_a_simulation(
    tmp_path: Path, line: str
) -> None:
    report = report_of(open_log(tmp_path, f"INFO {line}\n{ITERATION.format(1)}"))

    assert "simulat" not in " ".join(report.notes)
