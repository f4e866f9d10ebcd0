"""EQV001: the first (request, position) at which output differs from its solo reference."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.eqv.eqv001_diverged_from_solo import DivergedFromSolo
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import said
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of

SAME = [said("a", n, f"a{n}", f"a{n}") for n in range(3)]


def diverged(*rows: Row) -> list[Finding]:
    return DivergedFromSolo().check(trace_of(outputs=rows))


def test_a_request_is_found_at_its_first_token_that_differs() -> None:
    (found,) = diverged(*SAME, said("a", 3, "x", "a3"), said("a", 4, "y", "a4"))

    assert found.message == (
        "a differs from its solo run from token 4 of 5 on (2 tokens): first in step 4"
    )
    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("a", 4, 40, 50)
    assert (found.evidence["digest"], found.evidence["solo digest"]) == ("x", "a3")


def test_what_was_meant_for_another_request_is_told() -> None:
    (found,) = diverged(*SAME, said("b", 0, "b0", "b0"), said("b", 1, "a1", "b1"))

    assert (found.request, found.evidence["digest is that of"]) == ("b", "a, token 2")


@looped(
    "rows",
    [
        pytest.param(SAME, id="equal"),
        pytest.param([said("a", 0, "x", None)], id="no solo run"),
        pytest.param([said("a", 0, None, "a0")], id="no digest"),
        pytest.param([said("a", 0, "nan", "a0"), said("a", 1, "x", "a1")], id="not a number"),
        pytest.param([said("a", 0, "x", "a0", is_placeholder=True)], id="a placeholder"),
    ],
)
def test_other_outputs_are_clean(rows: list[Row]) -> None:
    assert diverged(*rows) == []


@looped(
    ("fault", "variant", "requests"),
    [
        ("full-accept-not-trimmed", "after", {"req-01": 8}),
        ("compaction-on-one-side", "after", {"req-03": 4, "req-02": 8}),
        ("scratch-shared", "after", {"req-00": 1, "req-01": 1, "req-02": 1}),
        ("every-row-samples-row-0", "v2-device-staging", {"req-01": 1, "req-02": 1, "req-03": 1}),
    ],
)
def test_outputs_that_others_changed_are_found(
    record: Record, fault: str, variant: str, requests: dict[str, int]
) -> None:
    pytest.importorskip("torch")
    found = DivergedFromSolo().check(record("ep-multiplexing", variant, fault))

    assert {each.request: each.evidence["position"] for each in found} == requests


def test_rows_that_were_mixed_up_name_whose_they_are(record: Record) -> None:
    pytest.importorskip("torch")
    found = DivergedFromSolo().check(
        record("ep-multiplexing", "v2-device-staging", "every-row-samples-row-0")
    )

    assert {each.evidence["digest is that of"] for each in found} == {"req-00, token 2"}


@looped("variant", ["before", "after", "v2-grouped-gemm"])
def test_outputs_equal_to_solo_runs_are_clean(record: Record, variant: str) -> None:
    pytest.importorskip("torch")

    assert DivergedFromSolo().check(record("ep-multiplexing", variant, max_tokens="5")) == []
