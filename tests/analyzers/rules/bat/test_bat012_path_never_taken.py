"""BAT012: a declared path, or a cell of path and width, was never reached."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.rules.bat.bat012_path_never_taken import PathNeverTaken
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.serving_rows import decode, prefill
from tests.looped import looped
from tests.traces import trace_of

RAN = [
    decode(1, 2, executed_path="decode: fused"),
    prefill(2, 9, 4, executed_path="mixed: grouped-gemm + per-token")
    | {"num_decode_reqs": 1, "num_decode_tokens": 1},
]


def ran(declared: Any) -> Trace:
    return trace_of(steps=RAN, config={"declared_paths": declared})


def missed(declared: Any) -> list[Finding]:
    return PathNeverTaken().check(ran(declared))


def test_a_declared_path_that_never_ran_is_found() -> None:
    (found,) = missed({"prefill": ["grouped-gemm"], "decode": ["fused", "per-token", "eager"]})

    assert found.message == "eager is declared for decode and was never run"
    assert found.severity is Severity.INFO


def test_a_declared_width_that_never_occurred_is_found() -> None:
    found = missed({"decode": {"fused": [2, 3], "per-token": [1, 4, 5], "eager": [1]}})

    assert [each.message for each in found] == [
        "eager is declared for decode and was never run",
        "fused is declared for decode and was never run at width 3",
        "per-token is declared for decode and was never run at widths 4, 5",
    ]
    assert [each.count for each in found] == [1, 1, 2]


def test_a_path_that_ran_for_the_other_phase_only_is_found() -> None:
    assert [each.evidence["phase"] for each in missed({"prefill": ["fused"]})] == ["prefill"]


@looped("declared", [None, "fused", {"decode": 3}, {"decode": [1, None]}, {}])
def test_without_a_declaration_it_is_not_applicable(declared: Any) -> None:
    assert check(ran(declared), (PathNeverTaken(),)).not_applicable == ("BAT012",)


def test_a_path_that_an_early_return_hides_is_found(record: Record) -> None:
    pytest.importorskip("torch")
    hidden = record("ep-multiplexing", fault="path-never-reached")

    (found,) = PathNeverTaken().check(hidden)

    assert found.evidence["path"] == "fused"
    assert PathNeverTaken().check(record("ep-multiplexing", stagger="6")) == []


def test_engines_that_declare_no_paths_cannot_be_judged(record: Record) -> None:
    result = check(record("fcfs-preemption"), (PathNeverTaken(),))

    assert result.not_applicable == ("BAT012",)
