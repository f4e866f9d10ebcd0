"""What differs is B less A of what `sql` says of each; what one does not tell has no delta."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stepscope.app.paired import deltas
from stepscope.app.paired.delta_rows import row
from stepscope.app.paired.pair import Pair
from stepscope.app.present.blocks import Block, Table
from stepscope.app.present.diff_text import amount
from stepscope.ingest.trace import Trace
from tests.app.paired.pairs import EVERY_PAIR, REAL, pair, real_pair
from tests.tiers import sampled, slow


def asked(trace: Trace, sql: str) -> Any:
    return trace.sql(sql).row(0)[0]


def table(blocks: list[Block], name: str) -> dict[str, tuple[object, ...]]:
    found = (each for each in blocks if isinstance(each, Table) and each.columns[0] == name)
    return {str(row[0]): row[1:] for each in found for row in each.rows}


QUESTIONS = {
    "steps": "select nullif(count(*), 0) from steps",
    "arrived": "select nullif(count(*), 0) from lifecycle where event = 'arrive'",
    "preemptions": "select case when count(*) filter (where event <> 'arrive') > 0 then "
    "count(*) filter (where event = 'preempt') end from lifecycle",
}


def holds(both: Pair) -> None:
    told = table(list(deltas.overview(both)), "outcome")
    for name, sql in QUESTIONS.items():
        a, b = (asked(trace, sql) for trace in both.traces)
        if (a, b) == (None, None):
            assert name not in told
        else:
            assert told[name] == row(name, a, b)


@pytest.mark.parametrize("name", EVERY_PAIR)
def test_totals_are_those_of_sql_on_each_trace(name: str) -> None:
    holds(pair(name))
    holds(pair(name).swapped())


def real_files() -> list[Path]:
    wanted = ("kineto", "swimlane", "logs", "requests")
    files = (each for folder in wanted for each in sorted((REAL / folder).glob("*")))
    return [each for each in files if each.is_file() and each.stat().st_size < 3_000_000]


@slow
@pytest.mark.skipif(not REAL.exists(), reason="the real files are not there")
def test_totals_of_random_pairs_of_real_files_are_those_of_sql() -> None:
    readable = []
    for file in real_files():
        try:
            Trace.open(file)
        except Exception:  # noqa: S112 - notes on where files are from lie beside them
            continue
        readable.append(file)
    pairs = Random(3).sample(list(combinations(readable, 2)), 6)
    for one, other in pairs:
        both = real_pair(one, other)
        holds(both)
        timeline = both.timeline(both.first_alignment)
        timeline.query(*timeline.bounds, 50, range(min(len(timeline.lanes), 40)))


@pytest.mark.parametrize("name", sampled(["fcfs", "mix", "vllm"], ["mix"]))
def test_tokens_and_times_of_random_steps_are_those_of_sql(name: str) -> None:
    both = pair(name)
    numbers = both.sides[0].composition.step.tolist()
    for step in Random(5).sample(numbers, min(5, len(numbers))):
        told = table(list(deltas.steps(both, step)), "step")[f"{step:,}"]
        sql = f"select {{}} from steps where step = {step}"  # noqa: S608 - a number of ours
        tokens = [
            asked(each, sql.format("num_prefill_tokens + num_decode_tokens"))
            for each in both.traces
        ]
        takes = [asked(each, sql.format("dur_ns")) for each in both.traces]
        assert told[:3] == row("tokens", *tokens)
        assert told[3:6] == row("_ns", *takes)


LATENCY = (
    "select max(ts_ns) filter (where event in ('finish', 'abort', 'error', 'reject')) - "
    "min(ts_ns) filter (where event = 'arrive') from lifecycle where request = '{}'"
)


@slow
def test_latencies_of_requests_are_those_of_sql() -> None:
    both = pair("fcfs")
    told = table(list(deltas.requests(both)), "request")
    for request in Random(2).sample(sorted(told), 6):
        latencies = (asked(each, LATENCY.format(request)) for each in both.traces)
        assert told[request][:3] == row("_ns", *latencies)


def test_what_one_trace_does_not_tell_has_no_delta() -> None:
    told = table(list(deltas.overview(pair("a profile and a run"))), "outcome")

    assert told["requests"] == ("-", "40", "not recorded")
    assert row("_ns", 0, 5) == ("0 ns", "5 ns", "+5 ns")
    assert row("_ns", None, 0) == ("-", "0 ns", "not recorded")


def test_a_request_and_a_step_without_a_partner_say_so() -> None:
    told = table(list(deltas.requests(pair("a profile and a run"))), "request")
    assert told["req-07"][2] == "only in B"

    steps = table(list(deltas.steps(pair("fcfs"), 200)), "step")
    assert steps["200"][2] == "only in B"
    assert steps["200"][0] == "-"


def test_a_rule_that_cannot_judge_a_side_has_no_delta() -> None:
    both = pair("a profile and a run")
    told = {row[0]: row[1:] for row in deltas.by_rule(both.swapped()).rows}
    for code, cells in told.items():
        for result, cell in zip(both.swapped().results, cells[:2], strict=True):
            assert cell == ("n/a" if code not in result.counts else f"{result.counts[str(code)]:,}")
        assert (cells[2] == "not applicable") == ("n/a" in cells[:2])


def test_amounts_are_told_as_diff_tells_them() -> None:
    totals = pair("fcfs").difference.outcomes.totals
    told = table(list(deltas.overview(pair("fcfs"))), "outcome")

    assert told["makespan"][:2] == tuple(
        amount("makespan_ns", each) for each in totals["makespan_ns"]
    )
