"""BAT013: an idle row's token is kept."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat013_masked_row_leak import MaskedRowLeak
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, event
from tests.analyzers.serving_rows import row, token
from tests.looped import looped
from tests.traces import trace_of

ROWS = [row(1, "a"), row(1, "b"), row(2, "b"), row(3, "b")]


def leaked(*tokens: Row) -> list[Finding]:
    finished = event("a", "finish", 20)
    return MaskedRowLeak().check(trace_of(outputs=tokens, batch_rows=ROWS, lifecycle=[finished]))


def test_a_token_of_a_request_that_is_not_in_the_batch_is_found() -> None:
    (found,) = leaked(token(1, "a", 0), token(2, "a", 1), token(3, "a", 2), token(3, "b", 2))

    assert found.message == (
        "a got 2 tokens from steps that it was not in: first token 2 in step 2, after it had ended"
    )
    assert (found.request, found.ts_ns, found.end_ns, found.count) == ("a", 30, 40, 2)


@looped(
    "sound",
    [
        pytest.param(token(1, "a", 0), id="in the batch"),
        pytest.param(token(2, "a", 0, source_step=1), id="written a step late"),
        pytest.param(token(2, "a", 0, is_placeholder=True), id="a placeholder"),
        pytest.param(token(9, "a", 0), id="a step without rows"),
    ],
)
def test_tokens_of_requests_in_the_batch_are_clean(sound: Row) -> None:
    assert leaked(sound) == []


def test_the_token_of_an_idle_row_is_found(record: Record) -> None:
    (found,) = MaskedRowLeak().check(record("slot-recycling", fault="masked-row-leak"))

    assert (found.request, found.step, found.count) == ("req-03", 25, 2)
    assert found.evidence["had ended"] == "finish"


@each_scenario
@looped("variant", ["before", "after"])
def test_sound_engines_are_clean(record: Record, scenario: str, variant: str) -> None:
    assert MaskedRowLeak().check(record(scenario, variant)) == []
