"""SGLang's own event loop, recorded: every step is what its scheduler's state says it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.attach.sglang.adapters import DRAINED, NO_PLACE
from stepscope.ingest.attach.sglang.followed import TURN_OF
from stepscope.ingest.trace import Trace
from tests.sglang import judges
from tests.sglang.situations import SITUATIONS

NAMES = [each["name"] for each in SITUATIONS]


class Run(NamedTuple):
    """A recorded situation, and what its witness wrote."""

    situation: dict[str, Any]
    trace: Trace
    truth: list[dict[str, Any]]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Every situation, run once by a process that imports SGLang once."""
    folder = tmp_path_factory.mktemp("sglang")
    driver = Path(__file__).with_name("drive_scheduler.py")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "STEPSCOPE_START": ""}
    done = subprocess.run([sys.executable, str(driver), str(folder)], env=env, check=False)
    logs = {each.name: each.read_text()[-2000:] for each in folder.glob("*/log")}
    assert done.returncode == 0, logs
    return dict(zip(NAMES, _found(folder), strict=True))


def _found(folder: Path) -> Iterator[Run]:
    for number, situation in enumerate(SITUATIONS):
        (trace,) = (folder / str(number) / "traces").iterdir()
        truth = (folder / str(number) / "truth.jsonl").read_text().splitlines()
        yield Run(situation, Trace.open(trace), [json.loads(line) for line in truth])


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest, runs: dict[str, Run]) -> Run:
    return runs[request.param]


def test_queue_batch_pages_owners_and_ratio_are_the_schedulers_own_at_every_step(run: Run) -> None:
    assert judges.num_missing(run.trace, run.truth) == 0
    assert judges.differences(run.trace, run.truth) == []
    assert run.trace.manifest.closed
    assert run.trace.manifest.dropped == {}


@pytest.mark.parametrize("what", ["waiting", "running", "batch", "pages", "evictable", "ratio"])
def test_the_witness_sees_every_difference(what: str, runs: dict[str, Run]) -> None:
    run = runs["pages of a shared prefix"]
    lines = [dict(line) for line in run.truth]
    middle = [line for line in lines if line["after"] == "schedule"][30]
    others = {
        "waiting": [*middle["waiting"], "nobody"],
        "running": middle["running"][1:],
        "batch": dict(reversed(middle["batch"].items())),
        "pages": {**middle["pages"], "nobody": [999]},
        "evictable": middle["evictable"] + 64,
        "ratio": 0.5,
    }
    assert others[what] != middle[what] or what == "batch"
    middle[what] = others[what]

    found = judges.differences(run.trace, lines)

    assert {line.partition(":")[0] for line in found} == {"step 31"}


def test_tokens_of_each_step_are_those_that_the_scheduler_gave(run: Run) -> None:
    assert judges.wrong_tokens(run.trace, run.truth) == []


def test_the_first_token_of_each_request_comes_with_the_step_that_the_scheduler_says(
    run: Run,
) -> None:
    given: dict[str, int] = {}
    for step, line in enumerate((x for x in run.truth if x["after"] == "outputs"), start=1):
        for name in (name for name, number in line["given"].items() if number):
            given.setdefault(name, step)
    outputs = run.trace.outputs.group_by("request").agg(pl.col("ts_ns").min()).collect()
    came_ns = dict(outputs.rows())

    told = run.trace.lifecycle.filter(pl.col("event") == "first-token").collect()

    first = run.trace.outputs.filter(pl.col("position") == 0).collect()
    assert dict(first.select("request", "source_step").rows()) == given
    assert dict(told.select("request", "ts_ns").rows()) == came_ns
    assert len(told) == len(given)


def test_drafts_that_were_right_are_those_that_the_scheduler_counted(run: Run) -> None:
    assert judges.wrong_drafts(run.trace, run.truth) == []
    drafted = run.trace.batch_rows.filter(pl.col("num_draft") > 0).collect()
    has_drafts = "speculative_algorithm" in run.situation["settings"]
    assert (drafted["num_accepted"].sum() > 0) is has_drafts


def test_whoever_waits_for_a_place_for_its_adapter_says_so(runs: dict[str, Run]) -> None:
    told = runs["more adapters than fit into a batch"].trace
    short = told.decisions.collect().filter(resource="lora")
    asked = told.lifecycle.collect().filter(event="arrive")["lora"]

    assert set(asked) == {None, "adapter-0", "adapter-1", "adapter-2"}
    assert set(short.select("reason", "needed", "available").rows()) == {(NO_PLACE, 1, 0)}
    drained = runs["adapters that are drained for those who wait too long"].trace.decisions
    assert set(drained.collect().filter(resource="lora")["reason"]) == {NO_PLACE, DRAINED}


def test_a_session_keeps_pages_between_its_turns_and_gives_them_back(runs: dict[str, Run]) -> None:
    trace = runs["sessions that keep their pages between turns"].trace
    told = trace.allocations.collect()
    kept = told.filter(owner="session chat")
    turns = trace.lifecycle.filter(pl.col("cause").str.starts_with(TURN_OF)).collect()

    given_back = kept.filter(op="release")
    assert len(kept) == 2 * len(given_back) > 0
    assert set(turns["event"]) == {"arrive"}
    assert {*turns["request"]} >= {"talk-0", "talk-1", "talk-2", "talk-3", "chat-0", "chat-1"}


def test_whoever_waits_has_a_reason_at_every_step(run: Run) -> None:
    assert judges.unexplained(run.trace, run.truth) == []


def test_whoever_goes_on_is_told_in_the_order_of_its_batch(run: Run) -> None:
    told = run.trace.decisions.filter(pl.col("verdict") == "chosen")
    rows = run.trace.batch_rows.select("step", "row", pl.col("request").alias("subject"))
    placed = told.join(rows, on=["step", "subject"]).sort("seq").collect()

    in_turn = placed.sort("step", "row", maintain_order=True)
    assert placed["row"].to_list() == in_turn["row"].to_list()


def test_reasons_are_what_the_schedulers_state_bears_out(run: Run) -> None:
    assert judges.unfounded(run.trace, run.truth) == []


def test_what_came_of_each_request_is_told(run: Run) -> None:
    events = Counter(run.trace.lifecycle.collect()["event"].to_list())
    ends = ("finish", "abort", "error", "reject")

    assert events["arrive"] == len(run.situation["requests"])
    assert sum(events[end] for end in ends) == events["arrive"]
    assert events["resume"] == events["preempt"]


def test_a_full_pool_retracts_and_says_how_much_was_needed(runs: dict[str, Run]) -> None:
    rows = runs["retractions"].trace.decisions.collect().rows(named=True)
    taken = [row for row in rows if row["verdict"] == "preempted"]

    assert taken
    assert all(row["resource"] == "kv-token" for row in taken)
    assert all(row["needed"] > row["available"] for row in taken)


def test_whoever_is_put_back_for_a_higher_priority_names_who_took_its_place(
    runs: dict[str, Run],
) -> None:
    trace = runs["priorities"].trace
    told = trace.lifecycle.collect().rows(named=True)
    priorities = {row["request"]: row["priority"] for row in told if row["event"] == "arrive"}
    preempted = [row for row in told if row["event"] == "preempt"]

    decided = trace.decisions.filter(pl.col("verdict") == "preempted").collect()

    assert preempted
    assert all(priorities[row["by_request"]] < priorities[row["request"]] for row in preempted)
    assert set(decided.select("resource", "needed", "available").rows()) == {("preemption", 1, 0)}


def test_who_finds_the_queue_full_is_rejected(runs: dict[str, Run]) -> None:
    trace = runs["few running slots, and a queue that takes no more"].trace
    rejected = trace.lifecycle.collect().filter(event="reject")
    decided = trace.decisions.collect().filter(verdict="rejected")

    assert len(rejected)
    assert set(rejected["cause"]) == {"The request queue is full."}
    assert decided["subject"].to_list() == rejected["request"].to_list()
    assert set(decided.select("resource", "needed", "available").rows()) == {("queue", 1, 0)}


def test_who_waits_for_a_grammar_says_so_at_every_step_until_it_is_compiled(
    runs: dict[str, Run],
) -> None:
    run = runs["grammars that are compiled late, and one that is given up meanwhile"]
    guided = {each["id"]: each for each in run.situation["requests"] if "regex" in each}

    waited = judges.waited_for(run.trace, "grammar")

    assert waited.keys() == guided.keys()
    assert all(
        waited[name] >= {*range(each["at"] + 1, each["compiled_at"])}
        for name, each in guided.items()
        if name != "14-03"
    )
    assert run.trace.lifecycle.collect().filter(request="14-03", event="abort").height == 1


def test_nobody_is_held_back_for_prefills_longer_than_prefills_ran(run: Run) -> None:
    told = blame(run.trace).requests
    steps = run.trace.steps.collect()
    most = steps.filter(pl.col("kind") == "prefill")["dur_ns"].sum()
    running = told.filter(pl.col("preempted_ns") == 0)["phase_ns"]

    if run.situation["settings"].get("prefill_decode_interval") is None:
        # Until the next batch is formed, the scheduler itself takes its time.
        assert all(each <= 2 * most for each in running)


def test_nothing_is_found_but_what_the_situation_makes(run: Run) -> None:
    found = {each.code for each in check(run.trace).findings}

    assert found <= FINDINGS.get(run.situation["name"], set())


def test_whoever_is_put_back_is_passed_by_younger_ones_as_often_as_the_rows_say(
    runs: dict[str, Run],
) -> None:
    trace = runs["retractions"].trace
    found = [each for each in check(trace).findings if each.code == "STV002"]
    told = {each.request or "": each.evidence for each in found}

    assert told
    for request, evidence in told.items():
        assert evidence["times passed over"] == _passed_by(trace, request)


def _passed_by(trace: Trace, request: str) -> int:
    """How many that came later were admitted in steps in which it waited, by the rows alone."""
    rows = trace.lifecycle.sort("ts_ns", maintain_order=True).collect().rows(named=True)
    arrived = {row["request"]: row["ts_ns"] for row in rows if row["event"] == "arrive"}
    waits, steps = False, set()
    for row in rows:
        if row["request"] == request:
            waits = row["event"] in ("arrive", "preempt")
        elif waits and row["event"] in ("admit", "resume"):
            steps |= {row["step"]} if arrived[row["request"]] > arrived[request] else set()
    return len(steps)


def test_whoever_is_put_out_of_a_full_queue_ends_in_an_error_as_often_as_the_rule_says(
    runs: dict[str, Run],
) -> None:
    trace = runs["a queue that puts out who asks for less, and requests without a priority"].trace
    told = trace.lifecycle.collect()
    put_out = told.filter(
        event="error", cause="The request is aborted by a higher priority request."
    )

    (found,) = [each for each in check(trace).findings if each.code == "STV012"]

    assert len(put_out)
    assert f"{len(put_out)} of {len(told.filter(event='arrive'))} requests" in found.message


def test_27_rules_can_judge(run: Run) -> None:
    assert len(check(run.trace).coverage.judged) >= 27


FINDINGS = {
    "retractions": {"STV001", "STV002", "STV004"},
    "overlap": {"STV001", "STV002", "STV004"},
    "priorities": {"STV001", "STV002", "STV004"},
    "few running slots, and a queue that takes no more": {"STV002"},
    "a queue that puts out who asks for less, and requests without a priority": {"STV012"},
    "pauses in place and with everybody put back": {"STV001", "STV002", "STV004"},
    "grammars that are compiled late, and one that is given up meanwhile": {"STV004"},
    "more adapters than fit into a batch": {"STV001"},
    "drafts in a pool that is too small for them": {"STV001", "STV002", "STV004"},
}
"""Who is put back stands behind all who wait; the longest outputs go first on purpose; the first
step with a grammar takes seconds."""
