"""EQV002: an input token was a placeholder, or not the token last sampled."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.eqv.eqv002_placeholder_consumed import PlaceholderConsumed
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import access
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import row, token
from tests.looped import looped
from tests.traces import trace_of

SAID = [token(1, "a", 0), token(3, "a", 1)]
SMALL = {
    "requests": "8", "prompt_len": "600", "max_tokens": "16", "budget": "256", "threshold": "200",
    "deferred": "true",
}  # fmt: skip


def read(step: int, epoch: int, **more: object) -> Row:
    place = {"step": step, "first": 0, "last": 1, "epoch": epoch}
    return access("host", "read", 10 * step, "input_ids") | place | more


def consumed(*reads: Row) -> list[Finding]:
    rows = [row(step, "a", row=0) for step in range(1, 9)]
    return PlaceholderConsumed().check(trace_of(accesses=reads, outputs=SAID, batch_rows=rows))


def test_a_decode_from_a_placeholder_is_found() -> None:
    (found,) = consumed(read(5, 0), read(7, 0))

    assert found.message == (
        "1 request decoded from a placeholder, 2 times: first a in step 5, in place of the token "
        "of step 3"
    )
    assert (found.request, found.step, found.count) == ("a", 5, 2)


def test_a_decode_from_an_older_token_is_found() -> None:
    (found,) = consumed(read(5, 1))

    assert found.message.startswith("1 request decoded from a token that was not their last")


@looped(
    "one",
    [
        pytest.param(read(5, 3), id="the last token"),
        pytest.param(read(3, 1), id="the last one before this step"),
        pytest.param(read(1, 0), id="nothing was sampled yet"),
        pytest.param(read(5, 0, first=3, last=4), id="a row that nobody has"),
        pytest.param(read(5, 0, buffer="pinned input_ids"), id="another buffer"),
        pytest.param(read(5, 0, op="write"), id="a write"),
    ],
)
def test_other_accesses_are_clean(one: Row) -> None:
    assert consumed(one) == []


def test_decodes_that_idled_and_read_a_placeholder_are_found(record: Record) -> None:
    (found,) = PlaceholderConsumed().check(
        record("mixed-batches", "before", "placeholder-read-as-token", **SMALL)
    )

    assert (found.count, found.evidence["token of step"], found.evidence["read from"]) == (
        6, 0, "host",
    )  # fmt: skip


@looped("variant", ["before", "after", "flag-off"])
def test_decodes_that_read_what_was_sampled_last_are_clean(record: Record, variant: str) -> None:
    trace = record("mixed-batches", variant, **SMALL)

    assert trace.accesses.filter(buffer="input_ids").collect().height > 50
    assert PlaceholderConsumed().check(trace) == []
