"""Logs that an SGLang and a vLLM wrote while we ran them: every figure of every line is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import COUNTS, report_of

SECOND = 1_000_000_000
OF_LINE = re.compile(
    r"\[([-\d]+ [:\d]+)\] "
    r"(Prefill|Decode|KV)(?: batch, | cache pool is full\. Retract requests\. )(.*)"
)
"""A line of SGLang's scheduler: its time, what it is of, what it says."""
ITERATION = re.compile(
    r"(\d\d-\d\d \d\d:\d\d:\d\d) .*Iteration\((\d+)\): (\d+) context requests, (\d+) context "
    r"tokens, (\d+) generation requests, (\d+) generation tokens, iteration elapsed time: "
    r"([\d.]+) ms, CPU KV cache usage: ([\d.]+)%"
)
NAMED = re.compile(r"([A-Za-z#][\w #()/-]*): (-?[\d.]+)(?: ?(%|tokens/s|reqs|tokens))?(?:, |$)")
"""A name with a number and its unit, as both engines write them."""
Said = tuple[int, str, dict[str, str]]


@pytest.fixture(scope="module")
def sglang_lines(sample_traces: Path) -> list[str]:
    text = (sample_traces / "sglang_scheduler.log").read_text(encoding="utf-8")
    return text.splitlines()


@pytest.fixture(scope="module")
def vllm_lines(sample_traces: Path) -> list[str]:
    return (sample_traces / "vllm_engine.log").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def sglang(sample_traces: Path) -> Trace:
    return Trace.open(sample_traces / "sglang_scheduler.log")


@pytest.fixture(scope="module")
def vllm(sample_traces: Path) -> Trace:
    return Trace.open(sample_traces / "vllm_engine.log")


# -- SGLang ----------------------------------------------------------------------------------


def said(lines: list[str]) -> Iterator[Said]:
    """When each line was written, what it is of, and its pairs of a name and a value."""
    for line in lines:
        match = OF_LINE.fullmatch(line)
        assert match, line
        at = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
        pairs = dict(pair.split(": ") for pair in match[3].split(", "))
        yield int(at.timestamp()) * SECOND, match[2], pairs


def test_every_line_of_sglangs_scheduler_is_read(sglang: Trace, sglang_lines: list[str]) -> None:
    kinds = Counter(kind for _, kind, _ in said(sglang_lines))

    report = report_of(sglang)
    assert report.read == {
        "SGLang Prefill batch lines": kinds["Prefill"],
        "SGLang Decode batch lines": kinds["Decode"],
        "SGLang retractions": kinds["KV"],
    }
    assert report.skipped == {}
    assert kinds.total() == len(sglang_lines) > 60


def test_steps_of_sglang_count_what_its_lines_count_and_stand_at_their_second(
    sglang: Trace, sglang_lines: list[str]
) -> None:
    told = []
    for at_ns, kind, pairs in said(sglang_lines):
        running, queue = pairs.get("#running-req"), pairs.get("#queue-req")
        if kind == "Prefill":
            counts = (int(pairs["#new-seq"]), int(pairs["#new-token"]), 0, 0)
        elif kind == "Decode":
            counts = (0, 0, int(running or 0), int(running or 0))
        else:
            continue
        told.append((at_ns, kind.lower(), *counts, int(running or 0), int(queue or 0)))

    read = rows(sglang, "steps", "ts_ns", *COUNTS[1:], "num_running", "num_waiting")

    # Lines of one second follow each other by a nanosecond at least.
    assert [(row[0] // SECOND * SECOND, *row[1:]) for row in read] == told
    assert [row[0] for row in read] == sorted(row[0] for row in read)


def test_a_step_of_sglang_on_a_cpu_says_that_no_graph_ran(sglang: Trace) -> None:
    """The field is called by the device: `cpu graph`, `npu graph`, `cuda graph`."""
    assert set(rows(sglang, "steps", "executed_path")) == {"eager"}


def test_every_other_figure_of_sglangs_lines_is_a_sample(
    sglang: Trace, sglang_lines: list[str]
) -> None:
    in_steps = {"#new-seq", "#running-req", "#queue-req", "#new-token"}
    told = []
    for at_ns, kind, pairs in said(sglang_lines):
        for name, value in pairs.items():
            number = value.rpartition(" -> ")[2]
            is_number = re.fullmatch(r"-?[\d.]+", number)
            if is_number and not (kind in ("Prefill", "Decode") and name in in_steps):
                told.append((at_ns, name.removesuffix(" (token/s)"), float(number)))

    read = rows(sglang, "counters", "ts_ns", "name", "value")

    assert Counter((row[0] // SECOND * SECOND, *row[1:]) for row in read) == Counter(told)
    assert {"token usage", "#cached-token", "#new_token_ratio"} <= {name for _, name, _ in told}


def test_each_request_that_sglang_retracted_is_preempted_at_the_second_of_its_line(
    sglang: Trace, sglang_lines: list[str]
) -> None:
    told = [
        at_ns
        for at_ns, kind, pairs in said(sglang_lines)
        if kind == "KV"
        for _ in range(int(pairs["#retracted_reqs"]))
    ]

    read = rows(sglang, "lifecycle", "event", "ts_ns")

    assert {event for event, _ in read} == {"preempt"}
    assert [at_ns // SECOND * SECOND for _, at_ns in read] == told
    assert len(told) == 4


# -- vLLM ------------------------------------------------------------------------------------


def test_every_line_of_vllm_is_read_or_counted_as_none_of_its_steps(
    vllm: Trace, vllm_lines: list[str]
) -> None:
    heads = ("Iteration(", "Avg prompt throughput: ", "SpecDecoding metrics: ")
    counts = [sum(head in line for line in vllm_lines) for head in heads]

    report = report_of(vllm)

    assert list(report.read.values()) == counts
    assert report.skipped == {"lines of no engine's steps": len(vllm_lines) - sum(counts)}
    assert min(counts) > 2


def test_steps_of_vllm_are_its_iterations_with_their_counts_and_lengths(
    vllm: Trace, vllm_lines: list[str]
) -> None:
    iterations = [match for match in map(ITERATION.search, vllm_lines) if match]
    told = [
        (int(match[2]), *map(int, match.groups()[2:6]), round(float(match[7]) * 1e6))
        for match in iterations
    ]

    read = rows(vllm, "steps", COUNTS[0], *COUNTS[2:], "dur_ns")

    assert read == told
    assert any(tokens > reqs for _, _, _, reqs, tokens, _ in told)
    seconds = [match[1].partition(" ")[2] for match in iterations]
    ends = rows(vllm, "steps", "ts_ns", "dur_ns")
    assert [
        f"{datetime.fromtimestamp((ts + dur) // SECOND, UTC):%H:%M:%S}" for ts, dur in ends
    ] == (seconds)


def test_every_figure_that_vllm_says_of_itself_is_a_sample(
    vllm: Trace, vllm_lines: list[str]
) -> None:
    told: list[tuple[str | None, str, float, str | None]] = []
    for line in vllm_lines:
        if match := ITERATION.search(line):
            told.append((None, "CPU KV cache usage", float(match[8]), "%"))
        for head, track in (("Engine 000: Avg", None), ("SpecDecoding metrics: ", "SpecDecoding")):
            _, found, behind = line.partition(head)
            text = behind if track else found.removeprefix("Engine 000: ") + behind
            text, ones = _rates(text)
            told += [(track, *each) for each in ones]
            told += [
                (track, name, float(value), unit or None)
                for name, value, unit in (NAMED.findall(text) if found else ())
            ]

    read = rows(vllm, "counters", "track", "name", "value", "unit")

    assert Counter((track or None, *rest) for track, *rest in read) == Counter(told)
    assert len(told) > 50
    assert max(value for _, name, value, _ in told if name == "Waiting") > 0


def _rates(text: str) -> tuple[str, list[tuple[str, float, None]]]:
    """The rates of each place of a draft, which are several behind one name, and all else."""
    name = "Per-position acceptance rate"
    match = re.search(name + r": ([\d.]+(?:, [\d.]+)*), ", text)
    if not match:
        return text, []
    rates = map(float, match[1].split(", "))
    return text.replace(match[0], ""), [
        (f"{name} {place}" if place > 1 else name, rate, None)
        for place, rate in enumerate(rates, start=1)
    ]
