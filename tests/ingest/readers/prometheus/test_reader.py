"""Metrics of Prometheus over time: scrapes one after the other, and answers as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.prometheus.reader import (
    HISTOGRAMS,
    NO_END,
    NO_SAMPLE,
    NO_TIMES,
    OTHERS,
    RATES,
    TIMELESS,
)
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.looped import looped

BEGIN_S = 1_787_306_400
"""2026-08-21 10:00:00 UTC, a Friday."""
INTERVAL_S = 5
RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


def scrape(number: int, running: int = 2, waiting: int = 6, *, stamp: str = "") -> str:
    """What a server answers: a gauge each, a total, a histogram, and what is the process's."""
    labels = 'engine="0",model_name="m"'
    return f"""\
# HELP {RUNNING} Number of requests in model execution batches.
# TYPE {RUNNING} gauge
{RUNNING}{{{labels}}} {running}.0{stamp}
{WAITING}{{{labels}}} {waiting}.0{stamp}
vllm:num_requests_waiting_by_reason{{{labels},reason="capacity"}} {waiting}.0{stamp}
vllm:kv_cache_usage_perc{{{labels}}} 0.1{stamp}
vllm:generation_tokens_total{{{labels}}} {100 * number}.0{stamp}
vllm:time_to_first_token_seconds_bucket{{{labels},le="0.1"}} 4.0{stamp}
python_gc_objects_collected_total{{generation="0"}} 4.0{stamp}
"""


def unix_time(number: int) -> str:
    return f"{BEGIN_S + INTERVAL_S * number}\n"


def clock(number: int) -> str:
    return f"10:{INTERVAL_S * number // 60:02d}:{INTERVAL_S * number % 60:02d}"


def opened(folder: Path, content: str, limits: Limits | None = None) -> Trace:
    file = folder / "metrics.txt"
    file.write_text(content)
    return Trace.open(file, limits=limits or Limits())


def over_time(before: Callable[[int], str], num: int = 12) -> str:
    return "".join(before(number) + scrape(number) for number in range(num))


@looped("before", [
    pytest.param(unix_time, id="date +%s"),
    pytest.param(lambda n: f"Fri Aug 21 {clock(n)} UTC 2026\n", id="date"),
    pytest.param(lambda n: f"Fri, 21 Aug 2026 {clock(n)} +0000\n", id="date -R"),
    pytest.param(lambda n: f"Fri 21 Aug 2026 {clock(n)} AM UTC\n", id="date of another locale"),
    pytest.param(lambda n: f"# scraped at 2026-08-21T{clock(n)}Z\n", id="an ISO time"),
    pytest.param(lambda n: f"date: Fri, 21 Aug 2026 {clock(n)} GMT\n\n", id="an HTTP header"),
    pytest.param(lambda n: f"timestamp {BEGIN_S + INTERVAL_S * n}.0\n", id="a name and seconds"),
    pytest.param(lambda n: f"### {(BEGIN_S + INTERVAL_S * n) * 1000} ###\n", id="milliseconds"),
])  # fmt: skip
def test_each_scrape_is_at_the_time_of_the_line_before_it(
    tmp_path: Path, before: Callable[[int], str]
) -> None:
    trace = opened(tmp_path, over_time(before, num=3))

    samples = [
        (at, value) for name, at, value in rows(trace, "counters", "name", "ts_ns", "value")
        if name == RUNNING
    ]  # fmt: skip
    times = [(BEGIN_S + INTERVAL_S * number) * SECOND for number in range(3)]
    assert samples == [(at, 2.0) for at in times]
    assert trace.manifest.clock.kind == "wall"


@looped("stamp", [" {ms}", " {s}.000"])
def test_times_behind_samples_are_milliseconds_or_seconds(tmp_path: Path, stamp: str) -> None:
    def stamped(number: int) -> str:
        at = BEGIN_S + INTERVAL_S * number
        return scrape(number, stamp=stamp.format(ms=at * 1000, s=at))

    trace = opened(tmp_path, "".join(map(stamped, range(3))) + "# EOF\n")

    assert sorted(set(rows(trace, "counters", "ts_ns"))) == [
        (BEGIN_S + INTERVAL_S * number) * SECOND for number in range(3)
    ]


def test_every_sample_is_read_or_counted(tmp_path: Path) -> None:
    trace = opened(tmp_path, over_time(unix_time, num=3))

    report = report_of(trace)
    assert report.read == {"samples": 15}
    assert report.skipped == {HISTOGRAMS: 3, OTHERS: 3}
    assert report.inferred == {RATES: 2}
    by_reason = 'vllm:num_requests_waiting_by_reason{reason="capacity"}'
    assert rows(trace, "counters", "name").count(by_reason) == 3


def test_totals_of_tokens_become_throughputs_and_may_start_over(tmp_path: Path) -> None:
    total = 'vllm:generation_tokens_total{{engine="0"}} {}\n'
    numbers = (100, 150, 20)

    trace = opened(tmp_path, "# TYPE vllm:generation_tokens_total counter\n" + "".join(
        unix_time(number) + total.format(value) for number, value in enumerate(numbers)
    ))  # fmt: skip

    rates = [
        value for name, value in rows(trace, "counters", "name", "value")
        if name == "Avg generation throughput"
    ]  # fmt: skip
    assert rates == [10.0, 4.0]


def codes_of(trace: Trace) -> set[str]:
    return {found.code for found in check(trace).findings}


def test_rules_on_reports_judge_a_queue_with_room(tmp_path: Path) -> None:
    assert "STV016" in codes_of(opened(tmp_path, over_time(unix_time)))


def test_a_server_without_a_queue_is_clean(tmp_path: Path) -> None:
    content = "".join(unix_time(n) + scrape(n, waiting=0) for n in range(12))

    assert codes_of(opened(tmp_path, content)) == set()


def test_engines_and_servers_are_ranks(tmp_path: Path) -> None:
    line = RUNNING + '{{engine="{}",instance="{}:8000"}} 1\n'
    places = (("0", "a"), ("1", "a"), ("0", "b"))
    one = "".join(line.format(*place) for place in places)

    trace = opened(tmp_path, f"# TYPE {RUNNING} gauge\n{unix_time(0)}{one}{unix_time(1)}{one}")

    assert trace.manifest.ranks == (0, 1, 2)
    assert trace.manifest.config["sources"]["2"] == "engine 0 b:8000"


def test_scrapes_without_times_are_in_order_and_have_no_clock(tmp_path: Path) -> None:
    trace = opened(tmp_path, over_time(lambda _: "", num=3))

    assert trace.manifest.clock.kind == "none"
    assert report_of(trace).notes == (NO_TIMES,)
    totals = [
        value for name, value in rows(trace, "counters", "name", "value")
        if name == "vllm:generation_tokens_total"
    ]  # fmt: skip
    assert totals == [0, 100, 200]
    assert not codes_of(trace) - {"TRC003"}


def test_scrapes_without_a_time_among_others_are_left_out(tmp_path: Path) -> None:
    content = scrape(0) + over_time(unix_time, num=2)

    assert report_of(opened(tmp_path, content)).skipped[TIMELESS] == 5


@looped("content", [
    pytest.param(scrape(0), id="without a time"),
    pytest.param(unix_time(0) + scrape(0), id="with a time"),
    pytest.param(json.dumps({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"__name__": RUNNING}, "value": [BEGIN_S, "3"]}]}}), id="an instant query"),
])  # fmt: skip
def test_one_scrape_is_refused_with_what_to_do(tmp_path: Path, content: str) -> None:
    with pytest.raises(UnknownFormat, match=r"single scrape.*query_range"):
        opened(tmp_path, content)


def series(name: str, *values: Any) -> dict[str, Any]:
    pairs = [[BEGIN_S + INTERVAL_S * n, value] for n, value in enumerate(values)]
    return {"metric": {"__name__": name, "engine": "0"}, "values": pairs}


def exported(found: dict[str, Any]) -> dict[str, Any]:
    times, values = zip(*found["values"], strict=True)
    return found | {"timestamps": [at * 1000 for at in times], "values": list(map(float, values))}


MATRIX = [series(RUNNING, "2", "3", "4"), series(WAITING, "0", "1", "2")]


@looped("content", [
    pytest.param(json.dumps({"status": "success", "data": {
        "resultType": "matrix", "result": MATRIX}}), id="a range query"),
    pytest.param("\n".join(json.dumps({"status": "success", "data": {
        "resultType": "matrix", "result": [one]}}) for one in MATRIX), id="two of them"),
    pytest.param("\n".join(json.dumps(exported(one)) for one in MATRIX), id="an export"),
    pytest.param("".join(
        f'{{__name__="{one["metric"]["__name__"]}",engine="0"}} {value} {at * 1000}\n'
        for one in MATRIX for at, value in one["values"]), id="a dump of promtool"),
])  # fmt: skip
def test_answers_as_json_and_dumps_are_the_same_samples(tmp_path: Path, content: str) -> None:
    trace = opened(tmp_path, content)

    assert sorted(rows(trace, "counters", "ts_ns", "name", "value")) == sorted(
        ((BEGIN_S + INTERVAL_S * n) * SECOND, name, float(value))
        for name, first in ((RUNNING, 2), (WAITING, 0))
        for n, value in enumerate(range(first, first + 3))
    )


@looped("odd", [
    series(RUNNING, "NaN", None, [1]), series(RUNNING, {}, "many", "+Inf"), {"metric": {}},
    {"metric": {"__name__": 5}, "values": [[BEGIN_S], 7, [None, "1"]]}, [], "text",
    {"metric": {"__name__": RUNNING}, "values": [[1e300, "1"], [10**400, 10**400]]},
])  # fmt: skip
def test_odd_series_cost_no_other(tmp_path: Path, odd: Any) -> None:
    result = {"resultType": "matrix", "result": [MATRIX[1], odd]}

    trace = opened(tmp_path, json.dumps({"status": "success", "data": result}))

    assert trace.num_rows("counters") == 3
    assert set(report_of(trace).skipped) <= {NO_SAMPLE}


@looped("line", [
    "vllm:x{engine=\"0\"} many", "vllm:x", "{} 3", "}{", "vllm:x NaN", "x" * 5_000, "\x00\xff",
    'vllm:x{a="' + '"' * 900 + '"} 3',
])  # fmt: skip
def test_odd_lines_are_counted_and_the_others_are_kept(tmp_path: Path, line: str) -> None:
    content = over_time(unix_time, num=2) + line + "\n" + over_time(unix_time, num=2)

    trace = opened(tmp_path, content)

    assert report_of(trace).read["samples"] == 20
    assert report_of(trace).skipped[NO_SAMPLE] == 1


def test_a_file_that_is_cut_off_keeps_the_samples_before(tmp_path: Path) -> None:
    content = over_time(unix_time, num=3)
    seen = set()

    for end in range(len(content), 0, -11):
        try:
            seen.add(opened(tmp_path, content[:end]).num_rows("counters"))
        except TraceError:
            seen.add(0)
    assert {0, 15 + 2} <= seen
    assert max(seen) == 17


def test_a_value_that_may_be_cut_off_is_left_out(tmp_path: Path) -> None:
    content = over_time(unix_time, num=2) + unix_time(2) + RUNNING + '{engine="0"} 1'

    report = report_of(opened(tmp_path, content))

    assert report.skipped[NO_END] == 1
    assert report.read["samples"] == 10


def test_what_is_beyond_the_limit_of_rows_is_said(tmp_path: Path) -> None:
    trace = opened(tmp_path, over_time(unix_time), Limits(rows=20))

    assert trace.num_rows("counters") == 20
    assert any("--max rows" in note for note in report_of(trace).notes)
