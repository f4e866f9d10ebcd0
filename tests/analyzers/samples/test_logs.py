"""What rules say of logs, against figures read from their lines.

The logs are of a recorded run, as SGLang and vLLM would have written them: a line for every few
steps, and one for each retraction. The run is slowed down, as a log has seconds where it had
milliseconds.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from stepscope.analyzers.check.registry import select
from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv016_queue_with_room import QueueWithRoom
from stepscope.analyzers.rules.stv.stv021_no_progress import NoProgress
from stepscope.ingest.trace import Trace
from tests.analyzers.samples.conftest import Sample
from tests.ingest.log_files import open_log

TRIED = frozenset(
    {"TRC001", "TRC002", "TRC003", "TRC005", "STV016", "STV021", "STV022", "STV023", "KVB009"}
)
OF_LOGS = select(["TRC", "STV016", "STV022", "STV023", "KVB009"])
EVERY = 4
"""How many steps have one line."""
BLOCK = 32
MORE = 400
"""Tokens of a request that is computed again, in a step that is told to decode."""
DECODE = re.compile(
    r"\[.+?:(\d\d):(\d\d)\] Decode batch. #running-req: (\d+), .*token usage: ([\d.]+), "
    r".*#queue-req: (\d+)"
)


@pytest.fixture(scope="module")
def sglang(crowd: Sample) -> str:
    """The crowd as SGLang's decode lines, a second for three steps."""
    preempted = {row["step"] for row in crowd.raw.events if row["event"] == "preempt"}
    lines = []
    for row in crowd.raw.steps:
        second = row["step"] // 3
        stamp = f"[2026-01-02 03:{second // 60:02}:{second % 60:02}]"
        used = row["kv_blocks_total"] - row["kv_blocks_free"]
        if row["step"] in preempted:
            lines.append(
                f"{stamp} KV cache pool is full. Retract requests. #retracted_reqs: 1, "
                "#new_tokens_gained: 64, #new_token_ratio: 0.0980 -> 0.3487"
            )
        if row["step"] % EVERY == 0:
            lines.append(
                f"{stamp} Decode batch. #running-req: {row['num_running']}, "
                f"#token: {used * BLOCK}, token usage: {used / row['kv_blocks_total']:.2f}, "
                f"cuda graph: False, gen throughput (token/s): 3.13, "
                f"#queue-req: {row['num_waiting']}"
            )
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def trace(sglang: str, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return open_log(tmp_path_factory.mktemp("sglang"), sglang)


@pytest.fixture(scope="module")
def said(trace: Trace) -> CheckResult:
    return check(trace, OF_LOGS)


def of(said: CheckResult, code: str) -> list[Finding]:
    return [each for each in said.findings if each.code == code]


def test_trc002_and_trc003_count_the_lines_that_steps_and_retractions_were_read_from(
    sglang: str, said: CheckResult, crowd: Sample
) -> None:
    decodes = DECODE.findall(sglang)
    seconds = [60 * int(minute) + int(second) for minute, second, *_ in decodes]
    steps, tables = (each.evidence for each in of(said, "TRC003"))

    assert all(one < other for one, other in pairwise(seconds))
    assert (said.counts["TRC001"], said.counts["TRC002"]) == (0, 0)
    assert steps["steps"] == len(decodes) == len(crowd.raw.steps) // EVERY
    num_retracted = sglang.count("Retract requests")
    assert tables["preempted requests that the log does not name"] == num_retracted == 6


def test_kvb009_finds_the_retractions_that_came_soon_after_one_another(
    sglang: str, said: CheckResult
) -> None:
    """Rounds further apart than 12 s are two storms, and four rounds make one."""
    rounds = [
        60 * int(minute) + int(second)
        for minute, second in re.findall(r":(\d\d):(\d\d)\] KV cache pool is full", sglang)
    ]
    storms: list[list[int]] = []
    for at in rounds:
        if storms and at - storms[-1][-1] <= 12:
            storms[-1].append(at)
        else:
            storms.append([at])
    large = [storm for storm in storms if len(storm) >= 4]

    assert said.counts["KVB009"] == len(large) == 1
    for found in of(said, "KVB009"):
        assert found.evidence["rounds"] == max(map(len, large))
        assert found.evidence["lasted_ns"] == (large[0][-1] - large[0][0]) * 10**9


def test_stv016_finds_the_lines_in_a_row_that_tell_of_a_queue_and_of_room(
    sglang: str, said: CheckResult, trace: Trace
) -> None:
    """The limit on running requests is what holds them.

    No line has more that run than the last, or as many run as at most, but for 15%.
    """
    decodes = [tuple(map(float, row)) for row in DECODE.findall(sglang)]
    rows = [(60 * minute + second, *rest) for minute, second, *rest in decodes]

    def longest(most: float) -> list[list[float]]:
        runs: list[list[list[float]]] = [[]]
        before, near = rows[0][1], 0.85 * max(row[1] for row in rows)
        for at, running, usage, queued in rows:
            if queued > 0 and usage <= most and (running <= before or running >= near):
                runs[-1].append([at, running, usage, queued])
            else:
                runs.append([])
            before = running
        return max(runs, key=len)

    (found,) = check(trace, [QueueWithRoom(max_usage=1.0, min_ns=0)]).findings

    run = longest(1.0)
    assert found.evidence["longest run_reports"] == len(run) > 3
    assert found.evidence["lasted_ns"] == (run[-1][0] - run[0][0]) * 10**9
    assert found.evidence["waiting at most"] == max(row[3] for row in run)
    assert found.evidence["running at most"] == max(row[1] for row in run)
    assert found.evidence["used_share"] == max(row[2] for row in run)
    assert (said.counts["STV016"], len(longest(0.5))) == (0, 0)


def test_stv021_finds_the_steps_in_a_row_in_which_only_prompts_are_computed(crowd: Sample) -> None:
    """Times are from the first begin to the last one's."""
    runs: list[list[int]] = [[]]
    for row in crowd.raw.steps:
        if row["num_running"] > 0 and not row["num_decode_tokens"] and row["num_prefill_tokens"]:
            runs[-1].append(row["ts_ns"])
        elif runs[-1]:
            runs.append([])
    longest = max(runs, key=len)

    every = NoProgress(min_ns=0, min_prompt_ns=0, min_reports=1)
    (found,) = check(crowd.trace, [every]).findings

    assert found.evidence["longest run_reports"] == len(longest)
    assert found.evidence["lasted_ns"] == longest[-1] - longest[0]
    assert crowd.checked.counts["STV021"] == 0


def test_stv022_and_stv023_find_nothing_in_a_log_that_ends_with_a_report(said: CheckResult) -> None:
    assert (said.counts["STV022"], said.counts["STV023"]) == (0, 0)


def test_stv023_names_the_line_with_which_a_log_goes_on_after_its_engine_died(
    sglang: str, tmp_path: Path
) -> None:
    last = DECODE.findall(sglang)[-1]
    failure = "[2026-01-02 03:30:00] Scheduler hit an exception: RuntimeError: no such page"

    (found,) = check(open_log(tmp_path, f"{sglang}{failure}\n"), select(["STV023"])).findings

    assert "RuntimeError: no such page" in found.message
    assert found.evidence["running"] == int(last[2])
    assert found.evidence["waiting"] == int(last[4])


def test_trc005_finds_the_line_of_vllm_with_more_tokens_than_rows(
    crowd: Sample, tmp_path: Path
) -> None:
    """The run as vLLM logs its iterations; one has a request that is computed again."""
    lines = [
        f"(EngineCore_DP0 pid=7) INFO 01-02 03:{row['step'] // 60:02}:{row['step'] % 60:02} "
        f"[core.py:359] Iteration({row['step']}): {row['num_prefill_reqs']} context requests, "
        f"{row['num_prefill_tokens']} context tokens, {row['num_decode_reqs']} generation "
        f"requests, {row['num_decode_tokens'] + MORE * (row['step'] == 150)} generation tokens, "
        "iteration elapsed time: 20.00 ms"
        for row in crowd.raw.steps
    ]
    text = "\n".join(lines) + "\n"
    told = re.findall(r"(\d+) generation requests, (\d+) generation tokens", text)
    pairs = [(int(rows), int(tokens)) for rows, tokens in told]
    more = [(rows, tokens) for rows, tokens in pairs if tokens > rows]

    (found,) = of(check(open_log(tmp_path, text), OF_LOGS), "TRC005")

    assert found.count == len(more) == 1
    assert (found.evidence["rows at worst"], found.evidence["tokens at worst"]) == more[0]
    assert found.evidence["steps with generation"] == sum(rows > 0 for rows, _ in pairs)
    assert found.evidence["tokens in excess"] == MORE
