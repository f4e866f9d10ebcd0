"""Layouts of logs that people bring: older and newer versions, other encodings, JSON spread out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.manifest import Manifest
from stepscope.ingest.readers.logs.reader import CUT_OFF
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import LOGS, STATISTICS, VLLM, open_log, report_of
from tests.ingest.readers.core_runtime.logs import RUNTIME_LOGS
from tests.ingest.zstd_frames import framed
from tests.tiers import sampled, slow

ITERATION = (
    "Iteration(7): 1 context requests, 8 context tokens, 2 generation requests, "
    "2 generation tokens, iteration elapsed time: 1.00 ms"
)
PREFIXES = {
    "(EngineCore_0 pid=1) INFO 07-08 00:00:02 [core.py:359] ": 0,
    "(EngineCore_3 pid=1) INFO 07-08 00:00:02 [core.py:359] ": 3,
    "(EngineCore_DP2 pid=9) INFO 07-08 00:00:02 [core.py:359] ": 2,
    "(EngineCore pid=9) INFO 07-08 00:00:02 [core.py:359] ": 0,
    "(APIServer pid=1) INFO 07-08 00:00:02 [loggers.py:182] Engine 001: ": 1,
    "\x1b[0;36m(EngineCore_DP1 pid=1)\x1b[0;0m \x1b[32mINFO\x1b[0m 07-08 00:00:02 [core.py:3] ": 1,
    "\x1b[36m(RayWorkerWrapper pid=123, ip=10.0.0.1)\x1b[0m INFO 07-08 00:00:02 [core.py:359] ": 0,
    "INFO 2026-07-08 00:00:02 [core.py:359] ": 0,
    "Engine 004: ": 4,
    "": 0,
}


def test_whatever_vllm_writes_before_an_iteration_it_is_one_of_its_rank(tmp_path: Path) -> None:
    columns = ("rank", "step", "kind", "num_decode_tokens")
    steps = {
        prefix: rows(open_log(tmp_path, f"{prefix}{ITERATION}\n"), "steps", *columns)
        for prefix in PREFIXES
    }

    assert steps == {prefix: [(rank, 7, "mixed", 2)] for prefix, rank in PREFIXES.items()}


def test_ranks_of_one_standard_output_are_told_apart(tmp_path: Path) -> None:
    lines = [f"{prefix}{ITERATION}" for prefix in PREFIXES if "Engine" in prefix]

    trace = open_log(tmp_path, "\n".join(lines) + "\n")

    assert trace.manifest.ranks == (0, 1, 2, 3, 4)


def test_interval_lines_of_an_older_vllm_are_counters(tmp_path: Path) -> None:
    line = (
        "INFO 07-08 00:00:10 metrics.py:455] Avg prompt throughput: 36.4 tokens/s, Running: 3 "
        "reqs, Swapped: 0 reqs, Pending: 1 reqs, GPU KV cache usage: 38.0%, "
        "CPU KV cache usage: 0.0%.\n"
    )

    trace = open_log(tmp_path, line)

    assert ("Pending", 1.0, "reqs") in rows(trace, "counters", "name", "value", "unit")
    assert ("CPU KV cache usage", 0.0, "%") in rows(trace, "counters", "name", "value", "unit")


SGLANG_LINES = {
    "older": "Prefill batch. #new-seq: 1, #new-token: 8, #cached-token: 1, cache hit rate: 2.27%, "
    "token usage: 0.00, #running-req: 4, #queue-req: 9",
    "newer": "Prefill batch [12], #new-seq: 1, #new-token: 8, #cached-token: 1, token usage: 0.00, "
    "#running-req: 4, #queue-req: 9, cuda graph: False, input throughput (token/s): 9.00, ",
    "disaggregated": "Prefill batch, #new-seq: 1, #new-token: 8, #cached-token: 1, token usage: "
    "0.00, #running-req: 4, #queue-req: 9, #prealloc-req: 0, #inflight-req: 0, ",
    "hybrid": "Prefill batch, #new-seq: 1, #new-token: 8, #cached-token: 1, full token usage: "
    "0.01, swa token usage: 0.10, #running-req: 4, #queue-req: 9, ",
}


def test_prefill_batches_of_every_sglang_are_steps(tmp_path: Path) -> None:
    columns = ("kind", "num_prefill_reqs", "num_prefill_tokens", "num_running", "num_waiting")
    stamps = ("[2025-09-18 15:32:52 TP0] ", "[2025-09-18 15:32:52] ", "")
    logs = [f"{stamp}{line}\n" for stamp in stamps for line in SGLANG_LINES.values()]

    steps = {log: rows(open_log(tmp_path, log), "steps", *columns) for log in logs}

    assert steps == {log: [("prefill", 1, 8, 4, 9)] for log in logs}


def test_an_older_sglang_retracts_in_other_words(tmp_path: Path) -> None:
    line = "[2024-09-18 15:32:52 TP0] Decode out of memory happened. #retracted_reqs: 2, x: 0.1\n"

    assert rows(open_log(tmp_path, line), "lifecycle", "event") == ["preempt"] * 2


ITERATIONS = [json.loads(line) for line in STATISTICS.splitlines()]
SPREAD = {
    "indented array": json.dumps(ITERATIONS, indent=2),
    "indented objects": "\n".join(json.dumps(each, indent=4) for each in ITERATIONS),
    "an array": json.dumps(ITERATIONS),
    "within an object": json.dumps({"model": "m", "stats": ITERATIONS}),
    "within an indented object": json.dumps({"run": {"stats": ITERATIONS}}, indent=1),
    "as Python prints it": "\n".join(map(str, ITERATIONS)),
    "an array as Python prints it": str(ITERATIONS),
    "behind a prefix": "\n".join(f"[TRT-LLM] [I] {json.dumps(each)}" for each in ITERATIONS),
}


def test_iteration_statistics_are_the_same_however_they_are_laid_out(tmp_path: Path) -> None:
    columns = ("step", "kind", "num_prefill_tokens", "kv_blocks_free", "dur_ns")
    steps = {}
    for how, text in SPREAD.items():
        trace = open_log(tmp_path, text + "\n")
        steps[how] = rows(trace, "steps", *columns), report_of(trace).skipped

    expected = [(5, "mixed", 77, 20, 12_500_000), (6, "decode", 0, None, 2_500_000)]
    assert steps == dict.fromkeys(SPREAD, (expected, {}))


@slow
def test_statistics_without_a_line_end_in_many_megabytes_are_read(tmp_path: Path) -> None:
    trace = open_log(tmp_path, json.dumps(ITERATIONS * 4_000))

    assert trace.num_rows("steps") == 8_000
    assert report_of(trace).skipped == {}


def test_statistics_that_are_cut_off_keep_what_is_whole(tmp_path: Path) -> None:
    text = json.dumps({"stats": ITERATIONS * 2}, indent=1)
    counts = set()

    for length in [*range(text.index('"iterLatencyMS"') + 20, len(text) - 5, 7), len(text) - 5]:
        if not (whole := _num_whole(text[:length])):
            continue
        trace = open_log(tmp_path, text[:length])
        assert trace.num_rows("steps") == whole
        assert report_of(trace).skipped == {CUT_OFF: 1}
        assert not trace.manifest.closed
        counts.add(whole)

    assert counts == {1, 2, 3, 4}


def _num_whole(text: str) -> int:
    """Objects of an iteration begin and end with two spaces before them, others deeper."""
    return sum(line in ("  }", "  },") for line in text.splitlines())


def test_an_iteration_log_of_an_older_version_says_how_long_in_seconds(tmp_path: Path) -> None:
    line = (
        "[TRT-LLM] [I] iter = 3, global_rank = 0, rank = 0, currank_total_requests = 1/0, "
        "elapsed_time = 0.02s, timestamp = 2025-05-20 23:24:41, num_scheduled_requests: 1, "
        "states = {'num_ctx_requests': 1, 'num_ctx_tokens': 10, 'num_generation_tokens': 0}\n"
    )

    trace = open_log(tmp_path, line)

    assert rows(trace, "steps", "step", "kind", "dur_ns") == [(3, "prefill", 20_000_000)]


def test_what_a_request_took_in_llamacpp_is_of_the_slot_that_was_named_before(
    tmp_path: Path,
) -> None:
    text = (
        "slot print_timing: id  2 | task 9 | \n"
        "prompt eval time =      75.60 ms /    12 tokens (    6.30 ms per token,   158.73 tokens "
        "per second)\n"
        "       eval time =     500.00 ms /    29 tokens (   17.24 ms per token,    58.00 tokens "
        "per second)\n"
    )

    counters = rows(open_log(tmp_path, text), "counters", "track", "name", "value", "unit")

    assert ("slot 2", "prompt eval time", 75.6, "ms") in counters
    assert ("slot 2", "eval tokens per second", 58.0, None) in counters


def test_the_rank_of_atom_may_stand_behind_its_clock(tmp_path: Path) -> None:
    line = (
        "[atom 15:31:09 EngineCore DP1] Scheduled mixed batch: 2 prefill + 3 decode, 9+3 tokens\n"
    )

    trace = open_log(tmp_path, line)

    assert rows(trace, "steps", "rank", "kind") == [(1, "mixed")]
    assert trace.manifest.clock.kind == "wall"


ALL = {**LOGS, **RUNTIME_LOGS}
QUICK = (next(iter(LOGS)), next(iter(RUNTIME_LOGS)))
SAVED: dict[str, Callable[[str], bytes]] = {
    "UTF-8 with a mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "UTF-16 the other way": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip in two parts": lambda text: (
        gzip.compress(text[:99].encode()) + gzip.compress(text[99:].encode())
    ),
    "zstd": lambda text: framed(text.encode()),
    "UTF-16 in gzip": lambda text: gzip.compress(text.encode("utf-16")),
}


@pytest.mark.parametrize("name", sampled(ALL, QUICK))
def test_a_log_is_the_same_however_it_was_saved(tmp_path: Path, name: str) -> None:
    plain = contents_of(open_log(tmp_path, ALL[name]))

    others = {
        how: contents_of(open_log(tmp_path, saved(ALL[name]))) for how, saved in SAVED.items()
    }

    assert [how for how, contents in others.items() if contents != plain] == []


def contents_of(trace: Trace) -> tuple[Manifest, dict[str, list[Any]]]:
    return trace.manifest, {
        name: trace.table(name).collect().rows() for name in trace.manifest.tables
    }


NOON_NS = 1_780_056_000_000_000_000  # 2026-05-29T12:00:00Z
PACKED: dict[str, dict[str, Any]] = {
    "python-json-logger": {"asctime": "2026-05-29 12:00:00,000", "levelname": "INFO", "message": 0},
    "logstash": {"@timestamp": "2026-05-29T12:00:00.000Z", "message": 0},
    "zap": {"level": "info", "ts": NOON_NS / 1e9, "msg": 0},
    "bunyan": {"time": "2026-05-29T12:00:00Z", "msg": 0},
    "structlog": {"event": 0, "timestamp": "2026-05-29T12:00:00Z"},
    "milliseconds": {"message": 0, "timestamp": NOON_NS // 1_000_000},
    "microseconds": {"message": 0, "timestamp": NOON_NS // 1_000},
}


def test_a_line_is_unpacked_whatever_library_packed_it_in_json(tmp_path: Path) -> None:
    steps = {}
    for library, fields in PACKED.items():
        packed = {name: value if value != 0 else ITERATION for name, value in fields.items()}
        trace = open_log(tmp_path, json.dumps(packed) + "\n")
        steps[library] = rows(trace, "steps", "step", "ts_ns")

    assert steps == {library: [(7, NOON_NS - 1_000_000)] for library in PACKED}


def test_a_packed_time_that_is_none_is_passed_over(tmp_path: Path) -> None:
    stamps: list[object] = [True, -1, 1e300, None, [], "soon", float("inf")]
    steps = {}
    for stamp in stamps:
        trace = open_log(tmp_path, json.dumps({"msg": ITERATION, "ts": stamp}) + "\n")
        steps[str(stamp)] = rows(trace, "steps", "step"), trace.manifest.clock.kind

    assert steps == dict.fromkeys(map(str, stamps), ([7], "virtual"))


def test_lines_of_a_web_server_in_between_are_left_out(tmp_path: Path) -> None:
    access = 'INFO:     127.0.0.1:5000 - "POST /v1/completions HTTP/1.1" 200 OK\n'

    trace = open_log(tmp_path, "".join(access + line for line in VLLM.splitlines(keepends=True)))

    assert rows(trace, "steps", "step") == [1, 2, 3]
    assert report_of(trace).skipped == {"lines of no engine's steps": 6}
