"""JSON lines of a stat logger of vLLM: what its scheduler says of itself over time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.stat_lines.reader import FINISHED, NO_RECORD, NO_TIMES, TIMELESS
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.looped import looped
from tests.tiers import slow

BEGIN_S = 1_787_306_400
Json = dict[str, Any]


def nested(number: int, *, engine: int = 0, tokens: int = 8) -> Json:
    return {
        "timestamp": BEGIN_S + 5 * number, "engine_idx": engine,
        "scheduler_stats": {
            "num_running_reqs": 2, "num_waiting_reqs": 6, "kv_cache_usage": 0.1,
            "prefix_cache_stats": {"reset": False, "queries": 100, "hits": 50},
            "spec_decoding_stats": None,
        },
        "iteration_stats": {
            "iteration_timestamp": BEGIN_S + 5 * number, "num_generation_tokens": tokens,
            "num_prompt_tokens": 0, "time_to_first_tokens_iter": [0.1],
        },
    }  # fmt: skip


def flat(number: int, **other: Any) -> Json:
    stats = {"num_running_reqs": 2, "num_waiting_reqs": 6, "kv_cache_usage": 0.1}
    return {"ts": BEGIN_S + 5 * number} | stats | other


def opened(folder: Path, *records: object, limits: Limits | None = None) -> Trace:
    file = folder / "stats.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return Trace.open(file, limits=limits or Limits())


def test_the_queue_and_the_kv_cache_have_the_names_of_vllms_log(tmp_path: Path) -> None:
    trace = opened(tmp_path, nested(0), nested(1))

    assert sorted(rows(trace, "counters", "ts_ns", "name", "value"))[:7] == [
        (BEGIN_S * SECOND, name, value)
        for name, value in (
            ("GPU KV cache usage", 0.1), ("Running", 2), ("Waiting", 6),
            ("num_generation_tokens", 8), ("num_prompt_tokens", 0),
            ("prefix_cache_stats.hits", 50), ("prefix_cache_stats.queries", 100),
        )
    ]  # fmt: skip
    assert trace.manifest.clock.kind == "wall"
    assert report_of(trace).skipped == {FINISHED: 2}


@looped("record", [nested, flat])
def test_rules_on_reports_judge_a_queue_with_room(tmp_path: Path, record: Any) -> None:
    trace = opened(tmp_path, *map(record, range(12)))

    assert "STV016" in {found.code for found in check(trace).findings}


@looped("names", [
    ("running", "waiting", "kv_cache_usage_perc"), ("num_running", "num_waiting", "kv_cache_usage"),
    ("num_requests_running", "num_requests_waiting", "gpu_cache_usage"),
    ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"),
])  # fmt: skip
def test_loggers_may_call_the_same_by_other_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    records = [
        {"time": BEGIN_S + 5 * n, **dict(zip(names, (2, 6, 0.1), strict=True))} for n in range(12)
    ]

    trace = opened(tmp_path, *records)

    assert "STV016" in {found.code for found in check(trace).findings}


def test_iterations_that_generate_nothing_are_no_progress(tmp_path: Path) -> None:
    records = [nested(number, tokens=8 if number < 3 else 0) for number in range(14)]

    trace = opened(tmp_path, *records)

    assert "STV021" in {found.code for found in check(trace).findings}


def test_engines_are_ranks(tmp_path: Path) -> None:
    trace = opened(tmp_path, nested(0, engine=0), nested(0, engine=3))

    assert trace.manifest.ranks == (0, 3)


@looped(("time", "ns"), [
    ({"ts": BEGIN_S + 0.25}, BEGIN_S * SECOND + SECOND // 4),
    ({"timestamp_ms": BEGIN_S * 1000}, BEGIN_S * SECOND),
    ({"time": (BEGIN_S + 1) * SECOND}, (BEGIN_S + 1) * SECOND),
    ({"datetime": "2026-08-21T10:00:01.5+00:00"}, BEGIN_S * SECOND + 3 * SECOND // 2),
    ({"elapsed": 1.5}, 3 * SECOND // 2), ({"t_ms": 20}, 20_000_000),
])  # fmt: skip
def test_times_are_read_in_the_unit_that_they_have(tmp_path: Path, time: Json, ns: int) -> None:
    record = flat(0)
    del record["ts"]

    trace = opened(tmp_path, record | time)

    assert set(rows(trace, "counters", "ts_ns")) == {ns}


def test_records_without_times_are_in_order_and_have_no_clock(tmp_path: Path) -> None:
    stats = [{"num_running_reqs": n, "num_waiting_reqs": 0} for n in range(3)]

    trace = opened(tmp_path, *stats)

    assert trace.manifest.clock.kind == "none"
    assert report_of(trace).notes == (NO_TIMES,)
    assert [value for name, value in rows(trace, "counters", "name", "value")
            if name == "Running"] == [0, 1, 2]  # fmt: skip


def test_a_record_without_a_time_among_others_is_left_out(tmp_path: Path) -> None:
    trace = opened(tmp_path, flat(0), flat(1) | {"ts": None}, flat(2))

    assert report_of(trace).skipped == {TIMELESS: 1}
    assert report_of(trace).read == {"records of stats": 2}


def test_a_list_of_records_is_read_too(tmp_path: Path) -> None:
    file = tmp_path / "stats.json"
    file.write_text(json.dumps([flat(0), nested(1)], indent=1))

    assert report_of(Trace.open(file)).read == {"records of stats": 2}


@looped("odd", [7, [], {}, {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, "text", None])
def test_lines_that_are_no_record_are_counted(tmp_path: Path, odd: object) -> None:
    trace = opened(tmp_path, flat(0), odd, flat(1))

    assert report_of(trace).read == {"records of stats": 2}
    assert report_of(trace).skipped == {NO_RECORD: 1}


@looped("odd", [
    {"num_running_reqs": "two"}, {"kv_cache_usage": None}, {"engine": -5}, {"engine": 1 << 70},
    {"x" * 999: 1}, {"deep": {"a": [1]}}, {"num_waiting_reqs": True},
    {"num_running_reqs": 10**400}, {"kv_cache_usage": -(10**400)},
])  # fmt: skip
def test_fields_of_other_types_cost_no_record(tmp_path: Path, odd: Json) -> None:
    trace = opened(tmp_path, flat(0), flat(1, **odd))

    assert report_of(trace).read == {"records of stats": 2}


@slow
def test_a_file_that_is_cut_off_keeps_the_whole_lines(tmp_path: Path) -> None:
    content = "".join(json.dumps(flat(number)) + "\n" for number in range(3))
    file = tmp_path / "cut.jsonl"
    outcomes: set[tuple[int, bool | None]] = set()

    for end in range(1, len(content) + 1):
        file.write_text(content[:end])
        try:
            trace = Trace.open(file)
        except TraceError:
            outcomes.add((0, None))
            continue
        outcomes.add((report_of(trace).read["records of stats"], trace.manifest.closed))
    whole = {(1, True), (2, True), (3, True)}
    assert outcomes == {(0, None), (1, False), (2, False), *whole}


def test_what_is_beyond_the_limit_of_rows_is_said(tmp_path: Path) -> None:
    trace = opened(tmp_path, *map(flat, range(9)), limits=Limits(rows=7))

    assert trace.num_rows("counters") == 7
    assert any("--max rows" in note for note in report_of(trace).notes)


def test_nothing_but_odd_lines_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "stats.jsonl"
    file.write_text('{"num_running_reqs": "x", "num_waiting_reqs": "y"}\n')

    with pytest.raises(TraceError, match="record of stats"):
        Trace.open(file)
