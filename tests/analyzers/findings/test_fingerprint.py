"""What a finding is about, from run to run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.fingerprint import fingerprint, subject
from tests.looped import looped

FOUND = Finding(
    "COR001", "mix", Severity.ERROR, "3.0 µs late", "wait", rank=0, step=3, ts_ns=7, end_ns=9,
    task=7, core=6, group=2, evidence={"late_ns": 3_000},
)  # fmt: skip

numbers = st.none() | st.integers(0, 2**62)


@given(numbers, numbers, numbers, numbers, st.text(), st.integers(1, 99))
def test_it_outlives_shifts_of_time_step_rank_and_whatever_is_measured(
    rank: int | None, step: int | None, ts_ns: int | None, core: int | None, text: str, count: int
) -> None:
    other = replace(
        FOUND, rank=rank, step=step, ts_ns=ts_ns, end_ns=ts_ns, core=core, message=text,
        evidence={"late_ns": 9}, count=count,
    )  # fmt: skip

    assert fingerprint(other) == fingerprint(FOUND)


@looped("change", [{"code": "COR003"}, {"task": 8}, {"group": 3}, {"request": "7"}, {"task": None}])
def test_another_rule_or_subject_is_another_finding(change: dict[str, Any]) -> None:
    assert fingerprint(replace(FOUND, **change)) != fingerprint(FOUND)


def test_a_core_counts_where_nothing_else_is_named() -> None:
    alone = replace(FOUND, task=None, group=None)

    assert subject(alone) == (("core", "6"),)
    assert subject(FOUND) == (("task", "7"), ("group", "2"))
    assert subject(replace(alone, core=None)) == ()


@looped(
    ("request_id", "kept"),
    [
        ("cmpl-7f3e9c1a-5d42-4b7e-9a11-0c2d3e4f5a6b-0", "cmpl-*-0"),
        ("chatcmpl-0123456789abcdef0123456789abcdef", "chatcmpl-*"),
        ("req-00", "req-00"),
        ("20261121", "20261121"),
        ("cmpl-req0000-0-8e282962", "cmpl-req0000-0-*"),
        ("job-deadbeef", "job-deadbeef"),
        ("job-deadbeef-0", "job-deadbeef-0"),
        ("req-00000012", "req-00000012"),
    ],
)
def test_ids_that_a_server_makes_up_stand_for_any_request(request_id: str, kept: str) -> None:
    assert subject(replace(FOUND, request=request_id))[0] == ("request", kept)
