"""Every question is answered by the tools that it needs, and what is not recorded is said so."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.trace import Trace
from tests.app.mcp.asked import TOOLS_BY_NAME, Asked
from tests.app.mcp.questions.of_real_files import OF_DATA, OF_RECORDED
from tests.app.mcp.questions.of_samples import AFTER, BEFORE, QUESTIONS
from tests.app.mcp.questions.question import Question
from tests.looped import looped
from tests.recorded import RecordedRun
from tests.tiers import slow

EVERY = (*QUESTIONS, *OF_DATA, *OF_RECORDED)


def asked_as(question: Question) -> str:
    return question.asks


@pytest.fixture(scope="module")
def data(shared_data: Path) -> Asked:
    return Asked(shared_data)


@cache
def opened(path: Path) -> Trace:
    return Trace.open(path)


def answers(asked: Asked, question: Question) -> str:
    """All that the calls give, as text."""
    given = []
    for tool, arguments in question.calls:
        trace = {} if tool in {"explain", "diff"} else {"trace": question.trace}
        given.append(asked.page(tool, **trace, **arguments).text)
    return "\n".join(given)


def check_facts(question: Question, trace: Trace) -> None:
    """Hold what is written down against the plain tables."""
    if question.known.startswith("select"):
        ((value,),) = trace.sql(question.known).rows()
        assert value == question.fact


def check_answer(question: Question, told: str) -> None:
    for each in question.says:
        assert (
            each.replace("{{}}", "\0").replace("{}", str(question.fact)).replace("\0", "{}") in told
        ), told
    lacking = [line for line in told.splitlines() if line.startswith("not recorded: ")]
    if question.is_trap:
        assert any(question.lacks in line for line in lacking), told
        assert all(";" in line for line in lacking), "what would record it is not said"
    assert not [each for each in question.never if each in told], told


@looped("question", QUESTIONS, ids=asked_as)
def test_a_question_over_the_samples(
    question: Question, samples: Asked, sample_traces: Path
) -> None:
    check_facts(question, opened(sample_traces / question.trace))
    check_answer(question, answers(samples, question))


@slow
@looped("question", OF_DATA, ids=asked_as)
def test_a_question_over_real_files(question: Question, data: Asked, shared_data: Path) -> None:
    check_facts(question, Trace.open(shared_data / question.trace))
    check_answer(question, answers(data, question))


@slow
@looped("question", OF_RECORDED, ids=asked_as)
def test_a_question_over_recorded_runs(
    question: Question, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(question.trace.removesuffix(".trace"))
    check_facts(question, run.trace)
    check_answer(question, answers(Asked(run.folder), question))


def test_the_step_at_which_the_runs_diverge_is_the_first_whose_batches_differ(
    sample_traces: Path,
) -> None:
    def batches(name: str) -> dict[int, list[object]]:
        rows = Trace.open(sample_traces / name).batch_rows.sort("step", "row").collect()
        of_step = rows.group_by("step", maintain_order=True).agg(
            pl.struct("request", "phase", "num_tokens")
        )
        return dict(of_step.iter_rows())

    before, after = batches(BEFORE), batches(AFTER)

    assert next(step for step in before if before[step] != after[step]) == 3


def test_there_are_enough_questions_and_traps_and_every_tool_is_needed() -> None:
    traps = [question for question in EVERY if question.is_trap]
    used = {tool for question in EVERY for tool, _ in question.calls}

    assert len(EVERY) >= 30
    assert len(traps) >= 8
    assert used == TOOLS_BY_NAME.keys() - {"traces"}
    assert len({question.asks + question.trace for question in EVERY}) == len(EVERY)
