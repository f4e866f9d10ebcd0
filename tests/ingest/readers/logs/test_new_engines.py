"""Lines of tt-xla's telemetry and of LLMServingSim, a simulator."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import (
    SERVING_SIM,
    TTXLA_RUNNER,
    TTXLA_SCHEDULER,
    open_log,
    report_of,
)
from tests.ingest.written_files import ORIGINS, from_origin
from tests.looped import looped

NOW_NS = 1_790_000_000_000_000_000


def test_what_tt_xla_s_scheduler_decides_is_a_step(tmp_path: Path) -> None:
    trace = open_log(tmp_path, TTXLA_SCHEDULER)

    columns = ("step", "ts_ns", "kind", "num_prefill_reqs", "num_decode_reqs", "num_prefill_tokens",
               "num_decode_tokens", "num_waiting", "num_running", "kv_blocks_free",
               "kv_blocks_total")  # fmt: skip
    assert rows(trace, "steps", *columns) == [
        (1, NOW_NS + 250_000_000, "prefill", 2, 0, 160, 0, 2, 1, 90, 100),
        (2, NOW_NS + 500_000_000, "decode", 0, 2, 0, 2, 3, 2, 0, 100),
    ]
    assert trace.manifest.clock.kind == "wall"
    assert ("decodes_displaced", 3.0) in rows(trace, "counters", "name", "value")


def test_a_preemption_is_told_though_not_of_whom(tmp_path: Path) -> None:
    trace = open_log(tmp_path, TTXLA_SCHEDULER)

    assert rows(trace, "lifecycle", "event", "request", "step") == [("preempt", None, 2)]
    assert report_of(trace).inferred["preempted requests that the log does not name"] == 1


def test_what_tt_xla_s_runner_ran_is_a_step_that_ended_at_its_time(tmp_path: Path) -> None:
    trace = open_log(tmp_path, TTXLA_RUNNER)

    columns = ("step", "ts_ns", "dur_ns", "kind", "num_prefill_reqs", "num_decode_reqs")
    assert rows(trace, "steps", *columns) == [
        (1, NOW_NS + 1_250_000_000, 250_000_000, "mixed", 1, 2),
    ]
    assert rows(trace, "lifecycle", "request", "event", "num_generated") == [
        ("a", "admit", None), ("a", "finish", 5),
    ]  # fmt: skip


def test_a_request_that_comes_into_the_batch_again_is_resumed(tmp_path: Path) -> None:
    text = TTXLA_RUNNER.replace('"readmission":false', '"readmission":true')

    assert rows(open_log(tmp_path, text), "lifecycle", "event") == ["resume", "finish"]


def test_scheduler_and_runner_in_one_file_stay_apart(tmp_path: Path) -> None:
    trace = open_log(tmp_path, TTXLA_SCHEDULER + TTXLA_RUNNER)

    assert trace.manifest.config["sources"] == {"0": "tt-xla scheduler", "1": "tt-xla runner"}
    assert rows(trace, "steps", "rank", "step") == [(0, 1), (0, 2), (1, 1)]


@looped(("field", "value"), [
    ("schema", 2), ("ts", None), ("ts", -1.0), ("ts", True), ("layer", "\"scheduler\""),
    ("event", "joy"), ("request_id", 7),
])  # fmt: skip
def test_a_record_that_does_not_read_as_one_is_counted(
    tmp_path: Path, field: str, value: Any
) -> None:
    admitted = json.loads(TTXLA_RUNNER.partition("\n")[0]) | {field: value}
    line = json.dumps(admitted, separators=(",", ":")) + "\n"

    report = report_of(open_log(tmp_path, TTXLA_SCHEDULER + line))

    assert report.read == {"tt-xla scheduler records": 2}
    assert sum(report.skipped.values()) == 1


@pytest.mark.parametrize("field", ["prefill_new", "running_scheduled", "decode_gated"])
def test_counts_that_the_scheduler_does_not_tell_are_unknown(tmp_path: Path, field: str) -> None:
    said = json.loads(TTXLA_SCHEDULER.partition("\n")[0])
    del said[field]

    trace = open_log(tmp_path, json.dumps(said))

    assert rows(trace, "steps", "kind", "num_prefill_reqs", "num_decode_tokens") == [
        (None, None, None)
    ]


def test_a_simulator_s_intervals_are_counters_of_their_instance_and_node(tmp_path: Path) -> None:
    trace = open_log(tmp_path, SERVING_SIM)

    assert rows(trace, "counters", "ts_ns", "track", "name", "value", "unit") == [
        (1_000_000_000, None, "Avg prompt throughput", 8780.0, "tokens/s"),
        (1_000_000_000, None, "Avg generation throughput", 27.0, "tokens/s"),
        (1_000_000_000, None, "Running", 9.0, "reqs"),
        (1_000_000_000, None, "Waiting", 2.0, "reqs"),
        (1_000_000_000, None, "NPU memory", 16462.51, "MB"),
        (1_000_000_000, None, "NPU memory used", 66.986, "%"),
        (1_000_000_000, None, "Prefix Cache Hit ratio", 0.25, "%"),
        (1_000_000_000, "Node 0", "CPU memory", 1.5, "MB"),
        (2_500_000_000, None, "Avg prompt throughput", 0.0, "tokens/s"),
        (2_500_000_000, None, "Avg generation throughput", 196.0, "tokens/s"),
    ]
    assert trace.manifest.clock.kind == "virtual"
    assert any("a simulator: its times are simulated" in note for note in report_of(trace).notes)


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_log_of_the_simulator_is_counted_whole(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "foreign/llmservingsim_sim.log")
    lines = [line for line in file.read_text().splitlines() if line]
    said = Counter[tuple[str, float]]()
    for line in lines:
        if found := re.match(r"\[[\d.]+s\] Avg prompt .*", line):
            pairs = re.findall(r"(Avg \w+ throughput): ([\d.]+)", found[0])
        else:
            pairs = re.findall(r"(Running|Waiting)(?: Instance\[0\])?: (\d+) reqs", line)
        said.update((name, float(value)) for name, value in pairs)

    trace = Trace.open(file)

    told = rows(trace, "counters", "name", "value")
    assert Counter(each for each in told if each[0] in {name for name, _ in said}) == said
    report = report_of(trace)
    assert sum(report.read.values()) + sum(report.skipped.values()) == len(lines)
