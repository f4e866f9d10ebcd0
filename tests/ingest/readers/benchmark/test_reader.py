"""Results of serving benchmarks: what clients saw of each request, and what is not recorded."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.diff.outcomes import totals
from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.many_runs.trace_row import trace_row
from stepscope.analyzers.summary.latencies import latencies
from stepscope.analyzers.summary.slo import judged, slo_of
from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.benchmark.decode import NOT_A_TIME
from stepscope.ingest.readers.benchmark.reader import FAILED_AT, NO_END, SEVERAL_AT_ONCE
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.looped import looped

MS = 1_000_000
Json = dict[str, Any]
RESULT: Json = {
    "date": "20260904-120000", "backend": "vllm", "model_id": "m", "num_prompts": 2,
    "request_rate": "inf", "duration": 5.1, "completed": 2, "total_input_tokens": 300,
    "request_throughput": 0.4, "input_lens": [100, 200], "output_lens": [3, 1],
    "ttfts": [0.25, 2.5], "itls": [[0.5, 0.125], []], "start_times": [731.5, 732.0],
    "generated_texts": ["a b c", "d"], "errors": ["", ""],
}  # fmt: skip
"""As `vllm bench serve --save-detailed` writes it; the times are sums of powers of two."""


def opened(folder: Path, *results: Json, limits: Limits | None = None) -> Trace:
    file = folder / "result.json"
    file.write_text("\n".join(map(json.dumps, results)))
    return Trace.open(file, limits=limits or Limits())


def without(*names: str, **other: Any) -> Json:
    return {key: value for key, value in RESULT.items() if key not in names} | other


def test_requests_arrive_when_they_were_sent_and_finish_after_their_gaps(tmp_path: Path) -> None:
    trace = opened(tmp_path, RESULT)

    assert rows(trace, "lifecycle", "request", "event", "ts_ns", "num_generated") == [
        ("req-00", "arrive", 0, None),
        ("req-00", "first-token", 250 * MS, 1),
        ("req-01", "arrive", 500 * MS, None),
        ("req-00", "finish", 875 * MS, 3),
        ("req-01", "first-token", 3_000 * MS, 1),
        ("req-01", "finish", 3_000 * MS, 1),
    ]
    assert rows(trace, "outputs", "request", "position", "ts_ns") == [
        ("req-00", 0, 250 * MS), ("req-00", 1, 750 * MS), ("req-00", 2, 875 * MS),
        ("req-01", 0, 3_000 * MS),
    ]  # fmt: skip
    assert trace.manifest.clock.has_times
    assert trace.manifest.config["benchmarks"][0]["request_rate"] == "inf"


def test_latencies_are_those_that_the_benchmark_measured(tmp_path: Path) -> None:
    trace = opened(tmp_path, RESULT)

    told = latencies(trace, blame(trace))

    assert sorted(told["ttft_ns"].to_list()) == [250 * MS, 2_500 * MS]
    assert sorted(told["latency_ns"].to_list()) == [875 * MS, 2_500 * MS]


def test_what_a_client_measured_is_not_called_the_engine_s(tmp_path: Path) -> None:
    trace = opened(tmp_path, RESULT)

    table = latencies(trace, blame(trace))

    assert table["ttft_ns"].null_count() < len(table)
    for name in ("engine_first_token_ns", "engine_ttft_ns", "engine_tpot_ns"):
        assert table[name].null_count() == len(table), name
    row = trace_row(trace, "result", check(trace, []))
    assert row["ttft_p50_ns"] is not None
    assert "engine_ttft_p50_ns" not in row
    met = judged(trace, blame(trace), slo_of("engine_ttft=1ms")).requests["met_engine_ttft"]
    assert met.null_count() == len(met)


def test_what_the_client_cannot_see_is_unknown_and_no_queue(tmp_path: Path) -> None:
    trace = opened(tmp_path, RESULT)

    spent = {cause.cause.name: cause.total_ns for cause in blame(trace).totals()}
    assert spent == {"unknown": 2_750 * MS, "decode": 625 * MS}
    codes = {found.code for found in check(trace).findings}
    assert codes == {"TRC003"}


def test_without_start_times_latencies_are_known_and_positions_are_not(tmp_path: Path) -> None:
    trace = opened(tmp_path, without("start_times"))

    assert trace.manifest.clock.kind == "none"
    assert rows(trace, "lifecycle", "request", "event") == [
        ("req-00", "arrive"), ("req-01", "arrive")
    ]  # fmt: skip
    assert sorted(rows(trace, "counters", "track", "name", "value")) == [
        ("req-00", "latency", 0.875), ("req-00", "mean time between tokens", 0.3125),
        ("req-00", "time to first token", 0.25), ("req-01", "latency", 2.5),
        ("req-01", "time to first token", 2.5),
    ]  # fmt: skip
    assert blame(trace).requests.is_empty()
    assert blame(trace).notes == (
        "when requests were sent is not recorded, so no cause of a latency is known",
        "time to first token of 2 requests: p50 1.4 s, p90 2.3 s, p99 2.5 s, max 2.5 s",
        "mean time between tokens of 1 request: p50 312.5 ms, p90 312.5 ms, p99 312.5 ms, "
        "max 312.5 ms",
        "latency of 2 requests: p50 1.7 s, p90 2.3 s, p99 2.5 s, max 2.5 s",
    )


def test_a_latency_that_is_stated_is_the_end(tmp_path: Path) -> None:
    trace = opened(tmp_path, without(latencies=[1.0, 2.75]))

    ends = [at for event, at in rows(trace, "lifecycle", "event", "ts_ns") if event == "finish"]
    assert ends == [1_000 * MS, 3_250 * MS]


def test_a_request_that_failed_has_its_error_and_no_latency(tmp_path: Path) -> None:
    failed = without(
        errors=["", "Traceback (most recent call last):\n  File\nTimeoutError: too slow\n"],
        ttfts=[0.25, 0.0], output_lens=[3, 0],
    )  # fmt: skip

    trace = opened(tmp_path, failed)

    assert rows(trace, "lifecycle", "request", "event", "cause")[3] == (
        "req-01", "error", "TimeoutError: too slow"
    )  # fmt: skip
    assert report_of(trace).inferred == {FAILED_AT: 1}
    note = "1 of 2 requests failed, 1 of them with: TimeoutError: too slow"
    assert note in report_of(trace).notes


def test_tokens_that_came_several_at_once_have_no_times_of_their_own(tmp_path: Path) -> None:
    trace = opened(tmp_path, without(output_lens=[9, 1]))

    assert set(rows(trace, "outputs", "request")) == {"req-01"}
    assert report_of(trace).skipped == {SEVERAL_AT_ONCE: 1}
    assert trace.num_rows("lifecycle") == 6


def test_an_answer_that_was_not_streamed_has_no_known_end(tmp_path: Path) -> None:
    trace = opened(tmp_path, without(itls=[[], []]))

    assert rows(trace, "lifecycle", "request", "event", "ts_ns")[-1] == ("req-00", "finish", None)
    assert report_of(trace).skipped == {NO_END: 1}


def test_lines_of_several_runs_are_ranks(tmp_path: Path) -> None:
    sglang = without("start_times", "request_rate", request_rate=math.inf, backend="sglang")

    trace = opened(tmp_path, sglang, sglang)

    assert trace.manifest.ranks == (0, 1)
    assert rows(trace, "lifecycle", "rank", "request")[2:] == [
        (1, "run2-req-00"),
        (1, "run2-req-01"),
    ]
    assert trace.manifest.config["benchmarks"][1]["request_rate"] == "inf"


@looped("odd", [
    {"ttfts": [None, "soon"]}, {"ttfts": [-1, math.nan]}, {"itls": [[0.5, "x"], 7]},
    {"output_lens": [True, 1 << 60]}, {"input_lens": "many"}, {"errors": [5]},
    {"itls": [[[0.5]], {}]}, {"ttfts": [0.25]}, {"start_times": [1e300, 0]},
    {"ttfts": [10**400, -(10**400)]},
])  # fmt: skip
def test_values_of_other_types_cost_no_request(tmp_path: Path, odd: Json) -> None:
    trace = opened(tmp_path, without(**odd))

    arrivals = [event for event in rows(trace, "lifecycle", "event") if event == "arrive"]
    assert len(arrivals) == 2
    assert set(report_of(trace).skipped) <= {NOT_A_TIME, NO_END, SEVERAL_AT_ONCE}


def test_a_result_of_totals_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match="--save-detailed"):
        opened(tmp_path, without("input_lens", "output_lens", "ttfts", "itls"))


def test_lengths_without_times_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="--save-detailed"):
        opened(tmp_path, without("ttfts", "itls"))


def test_a_file_that_is_cut_off_keeps_the_whole_runs_before(tmp_path: Path) -> None:
    content = "\n".join(map(json.dumps, (RESULT, RESULT)))
    file = tmp_path / "cut.json"
    whole = len(json.dumps(RESULT))
    outcomes: set[tuple[str | int, bool]] = set()

    for end in range(1, len(content), 7):
        file.write_text(content[:end])
        try:
            trace = Trace.open(file)
        except TraceError:
            outcomes.add(("refused", end < whole))
            continue
        outcomes.add((trace.num_rows("lifecycle"), end < whole))
        assert trace.manifest.closed is (end <= whole + 1)
    assert outcomes == {("refused", True), (6, False)}


@looped("limits", [Limits(rows=6), Limits(rows=1)])
def test_what_is_beyond_the_limit_of_rows_is_said(tmp_path: Path, limits: Limits) -> None:
    trace = opened(tmp_path, RESULT, limits=limits)

    assert not trace.manifest.closed
    assert any("--max rows" in note for note in report_of(trace).notes)


def test_a_file_larger_than_may_be_read_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="--max whole"):
        opened(tmp_path, RESULT, limits=Limits(whole=100))


def _without_times_of_one() -> Json:
    """Four requests that completed; of the second no time is known, of the third no end."""
    return RESULT | {
        "completed": 4, "num_prompts": 4, "input_lens": [100] * 4, "output_lens": [2, None, 2, 2],
        "ttfts": [0.25, None, 0.25, 0.25], "itls": [[0.5], [0.5], None, [0.5]],
        "start_times": [700.0, 701.0, 710.0, 720.0], "errors": [""] * 4,
    }  # fmt: skip


def test_a_request_that_completed_at_an_unknown_time_is_not_said_to_have_starved(
    tmp_path: Path,
) -> None:
    trace = opened(tmp_path, _without_times_of_one())

    assert {found.code for found in check(trace).findings} == {"TRC003"}


def test_the_time_of_a_request_without_a_known_token_is_unknown(tmp_path: Path) -> None:
    trace = opened(tmp_path, _without_times_of_one())

    spent = {cause.cause.name: cause.total_ns for cause in blame(trace).totals()}
    assert spent["decode"] == 2 * 500 * MS
    assert spent.keys() == {"decode", "unknown"}


def test_requests_that_completed_are_not_open(tmp_path: Path) -> None:
    told = totals(opened(tmp_path, _without_times_of_one()))

    assert (told["finished"], told["open"]) == (4, 0)


def test_requests_of_a_run_that_completed_fewer_stay_open(tmp_path: Path) -> None:
    told = totals(opened(tmp_path, _without_times_of_one() | {"completed": 3}))

    assert (told["finished"], told["open"]) == (2, 2)
