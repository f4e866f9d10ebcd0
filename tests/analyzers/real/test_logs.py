"""Rules on real logs of serving engines, against figures read from their lines.

The logs of the core-group runtime are in test_runtime_logs.py.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import CheckResult, check
from tests.analyzers.conftest import Real

TRIED = frozenset(
    {
        "TRC001",
        "TRC002",
        "TRC003",
        "TRC005",
        "STV007",
        "STV016",
        "STV021",
        "STV022",
        "STV023",
        "BAT004",
        "KVB009",
    }
)
RETRACT, FORMATS = "sglang_retract", "formats"
DECODE = re.compile(
    r"\[(.+?)\] Decode batch, #running-req: (\d+), #token: (\d+), token usage: ([\d.]+), "
    r"cuda graph: (\w+),.*#queue-req: (\d+)"
)


@pytest.fixture
def lines(shared_data: Path, name: str) -> list[str]:
    return (shared_data / "logs" / f"{name}.log").read_text(encoding="utf-8").splitlines()


@pytest.fixture
def said(real: Real, name: str) -> CheckResult:
    return _checked(real(f"logs/{name}.log"))


_checked = cache(check)


both = pytest.mark.parametrize("name", [RETRACT, FORMATS])
retract = pytest.mark.parametrize("name", [RETRACT])


@both
def test_stv011_and_bat011_do_not_judge_a_log_that_leaves_decodes_out(said: CheckResult) -> None:
    assert {"STV011", "BAT011"} <= set(said.not_applicable)


@retract
def test_trc002_finds_the_lines_in_order_and_trc001_the_last_one_whole(
    lines: list[str], said: CheckResult
) -> None:
    decodes = [found for found in map(DECODE.match, lines) if found]

    assert len(decodes) == 6
    assert [found[1] for found in decodes] == sorted(found[1] for found in decodes)
    assert (said.counts["TRC001"], said.counts["TRC002"]) == (0, 0)


@retract
def test_trc003_counts_the_steps_and_the_retractions_that_were_read_from_lines(
    lines: list[str], said: CheckResult
) -> None:
    steps, tables = (each.evidence for each in said.findings if each.code == "TRC003")

    assert steps["steps"] == sum("Decode batch" in line for line in lines) == 6
    num_retracted = sum("Retract requests. #retracted_reqs: 1" in line for line in lines)
    assert tables["preempted requests that the log does not name"] == num_retracted == 5


@both
def test_trc005_finds_no_step_with_more_tokens_than_rows(
    lines: list[str], said: CheckResult, name: str
) -> None:
    """vLLM's lines tell both; of SGLang a decode is a token for each request."""
    told = re.compile(r"(\d+) generation requests, (\d+) generation tokens")
    pairs = [(found[1], found[2]) for found in map(told.search, lines) if found]

    assert all(rows == tokens for rows, tokens in pairs)
    assert len(pairs) == (0 if name == RETRACT else 2)
    assert said.counts["TRC005"] == 0


@retract
def test_running_slots_that_a_full_pool_keeps_free_are_no_idle_capacity(
    lines: list[str], said: CheckResult
) -> None:
    """Up to 7 of the 67 that ran at most are free with 20 waiting: the pool is 99% full or more."""
    decodes = [found for found in map(DECODE.match, lines) if found]
    running, waiting = [int(each[2]) for each in decodes], [int(each[6]) for each in decodes]

    assert (max(running) - min(running), max(waiting)) == (7, 20)
    assert [float(each[4]) for each in decodes][3:] == [1.0, 0.99, 1.0]
    assert {"STV009", "STV010"} <= set(said.not_applicable)


@retract
def test_kvb009_finds_the_retractions_line_by_line(lines: list[str], said: CheckResult) -> None:
    rounds = [line for line in lines if "Retract requests. #retracted_reqs: 1," in line]
    (storm,) = (each for each in said.findings if each.code == "KVB009")

    assert (storm.evidence["rounds"], storm.evidence["requests"]) == (len(rounds), 5) == (5, 5)


@retract
def test_stv016_finds_no_room_in_a_pool_that_is_full(lines: list[str], said: CheckResult) -> None:
    decodes = [found for found in map(DECODE.match, lines) if found]

    assert min(float(each[4]) for each in decodes) == 0.93
    assert said.counts["STV016"] == 0


@pytest.mark.parametrize("name", [FORMATS])
def test_engines_that_share_a_log_are_no_ranks_of_a_run(said: CheckResult) -> None:
    assert "TRC004" in said.not_applicable
    assert {each.severity for each in said.findings} == {"info"}


@both
def test_stv021_to_stv023_say_nothing_of_logs_that_compute_to_their_last_line(
    lines: list[str], said: CheckResult
) -> None:
    assert not any("fatal error" in line or "hit an exception" in line for line in lines)
    assert {code: said.counts.get(code, 0) for code in ("STV021", "STV022", "STV023")} == {
        "STV021": 0, "STV022": 0, "STV023": 0,
    }  # fmt: skip


def test_no_request_of_a_log_is_twice_in_a_batch_or_passed_over_for_ever(real: Real) -> None:
    trace = real(f"logs/{FORMATS}.log")

    batches = trace.batch_rows.select("rank", "step", "request").collect()
    found = check(trace, [rule for rule in RULES if rule.code in ("BAT004", "STV007")])

    assert len(batches) == len(batches.unique()) > 0
    assert found.counts == {"BAT004": 0, "STV007": 0}
