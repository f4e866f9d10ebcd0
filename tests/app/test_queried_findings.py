"""`findings` in a query is what `check` finds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.app import queried_findings
from stepscope.ingest.trace import Trace
from tests.tiers import slow
from tests.traces import trace_of

SAMPLES = ["fcfs-preemption-before", "mix-admission-before", "vllm_crowd"]


@pytest.fixture(autouse=True)
def _without_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


@slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_query_counts_what_check_counts(sample_traces: Path, name: str) -> None:
    trace = Trace.open(sample_traces / f"{name}.trace")

    asked = trace.sql("select code, sum(count) as found from findings group by code")

    counted = {code: number for code, number in check(trace).counts.items() if number}
    assert dict(asked.iter_rows()) == counted
    assert counted


@slow
def test_findings_join_the_steps_that_they_name(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "fcfs-preemption-before.trace")

    joined = trace.sql(
        "select f.code, s.kind from findings f join steps s on f.step = s.step and f.rank = s.rank"
    )

    named = [each for each in check(trace).findings if each.step is not None]
    assert Counter(joined["code"]) == Counter(each.code for each in named)


@slow
def test_a_finding_that_names_no_rank_has_none(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "mix-admission-before.trace")
    ranks = trace.sql("select rank from findings")["rank"].to_list()

    assert ranks == [each.rank for each in check(trace).findings]


def test_rules_run_only_where_a_query_names_findings_and_then_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    num_checks = 0

    def counting(*given: Any) -> CheckResult:
        nonlocal num_checks
        num_checks += 1
        return check(*given)

    monkeypatch.setattr(queried_findings, "check", counting)
    trace = trace_of(steps=[{"step": 1, "ts_ns": 1, "kind": "decode"}])

    trace.sql("select * from steps")
    assert num_checks == 0
    assert trace.sql("select count(*) from findings").item() == 0
    trace.sql("select * from findings")
    assert num_checks == 1


def test_the_thresholds_of_the_project_hold(sample_traces: Path, tmp_path: Path) -> None:
    (tmp_path / "stepscope.toml").write_text('ignore = ["STV"]\n')
    trace = Trace.open(sample_traces / "fcfs-preemption-before.trace")

    codes = trace.sql("select distinct code from findings")["code"].to_list()

    assert sorted(codes) == ["KVB003", "KVB004"]


@slow
def test_an_empty_answer_has_the_columns(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "fcfs-preemption-after.trace")

    answer = trace.sql("select * from findings")
    assert answer.height == 0
    assert answer.schema["ts_ns"] == pl.Int64
