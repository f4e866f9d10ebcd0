"""Engines in the caller's own process: every step is what the scheduler, and vLLM, say it was."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.app.debug.session import Session
from stepscope.ingest.trace import Trace
from tests.vllm.judging import judges, reasons, state
from tests.vllm.judging.confirm import confirm
from tests.vllm.runs import Run
from tests.vllm.situations import IN_PROCESS


@pytest.fixture(params=[each.__name__ for each in IN_PROCESS])
def run(request: pytest.FixtureRequest, in_process: dict[str, Run]) -> Run:
    return in_process[request.param]


def test_queues_batch_blocks_and_owners_are_the_schedulers_own_at_every_step(run: Run) -> None:
    assert state.missing(Session(run.trace), run.truth[0]) == 0
    assert state.differences(run.trace, run.truth[0]) == []


def test_the_witness_sees_every_difference(run: Run) -> None:
    lines = [dict(line) for line in run.truth[0]]
    batches = [line for line in lines if line["after"] == "schedule" and line["batch"]]
    middle = batches[len(batches) // 2]
    middle["running"] = [*middle["running"], "nobody"]

    assert len(state.differences(run.trace, lines)) == 1


def test_whoever_waits_has_a_reason_at_every_step(run: Run) -> None:
    assert state.unexplained(run.trace, run.truth[0]) == []


def test_reasons_are_what_the_scheduler_was_short_of(run: Run) -> None:
    assert reasons.unfounded(run.trace, run.truth[0]) == []


def test_tokens_of_each_step_are_those_of_the_engines_own_profile(run: Run) -> None:
    (profile,) = run.profiles
    true = judges.tokens_of_steps(Trace.open(profile))

    assert judges.tokens_of_steps(run.trace) == true
    assert judges.tokens_of_rows(run.trace) == true


def test_latencies_are_within_a_millisecond_of_those_that_the_engine_counted(run: Run) -> None:
    wrong, num_compared = judges.wrong_latencies(run.trace, run.metrics)

    # vLLM reads its clock where a call begins, and the recorder where it has ended: on a busy
    # machine the engine may stand still between the two.
    assert len(wrong) <= num_compared // 10, wrong


def test_generated_tokens_are_as_many_as_the_engine_gave(run: Run) -> None:
    names = judges.external_ids(run.trace)
    counted = run.trace.outputs.collect()["request"].value_counts().rows()
    requests = run.metrics["requests"]
    told = {request["id"]: request["out"] for request in requests if request["out"]}

    assert {names[request]: num for request, num in counted if names[request] in told} == told


def test_each_step_says_which_graph_ran_it_and_has_logits_of_each_row_and_draft(run: Run) -> None:
    drafts = pl.col("num_draft").fill_null(0).sum()
    rows = run.trace.batch_rows.group_by("step").agg(num=pl.len() + drafts)
    steps = run.trace.steps.join(rows, on="step").collect()

    assert steps.height == run.trace.steps.filter(pl.col("kind") != "idle").collect().height
    decoding = {"graph none"} if run.is_eager else {"graph none", "graph full"}
    assert set(steps["executed_path"]) == decoding
    assert steps["logits_rows"].to_list() == steps["num"].to_list()


def test_at_least_32_rules_judge_a_run_of_one_rank(run: Run) -> None:
    assert len(judges.judged(run.trace)) >= 32


def test_requests_that_vllm_ended_as_errors_end_so_in_the_trace(
    in_process: dict[str, Run],
) -> None:
    run = in_process["mix"]
    names = judges.external_ids(run.trace)
    rows = run.trace.lifecycle.collect().rows(named=True)
    told = {request["id"] for request in run.metrics["requests"] if request["reason"] == "error"}

    assert told
    assert {names[row["request"]] for row in rows if row["event"] == "error"} == told


def test_every_finding_is_the_same_counted_from_rows_and_from_the_scheduler(run: Run) -> None:
    assert [str(each) for each in confirm(run) if not each.is_confirmed] == []


def test_requests_that_error_and_that_compute_again_are_found(in_process: dict[str, Run]) -> None:
    # On a busy machine somebody may wait so long that this is found, too.
    assert {each.rule for each in confirm(in_process["mix"])} >= {"STV012", "KVB004"}
