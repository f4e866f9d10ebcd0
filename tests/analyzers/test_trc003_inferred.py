"""TRC003: kinds or identities were inferred, not recorded."""

from __future__ import annotations

from stepscope.analyzers.finding import Severity
from stepscope.analyzers.rules.trc003_inferred import Inferred
from stepscope.ingest.manifest import ReadReport
from tests.traces import trace_of


def test_inferred_steps_are_counted_per_source() -> None:
    tags = [{"step": n, "ts_ns": 10 * n, "kind": "decode", "inferred": "tag"} for n in range(3)]
    logged = {"step": 3, "ts_ns": 30, "kind": "mixed", "inferred": "log line"}
    recorded = {"step": 4, "ts_ns": 40, "kind": "decode"}

    found = Inferred().check(trace_of(steps=[*tags, logged, recorded]))

    assert [each.message for each in found] == [
        "kind and counts of 1 step were inferred from: log line",
        "kind and counts of 3 steps were inferred from: tag",
    ]
    assert [each.count for each in found] == [1, 3]
    assert {each.severity for each in found} == {Severity.INFO}


def test_inferred_tables_are_named() -> None:
    collective = {"ordinal": 1, "op": "all_reduce"}
    report = ReadReport(inferred={"collectives": 1})
    trace = trace_of(collectives=[collective], tables={"collectives": "inferred"}, report=report)

    (found,) = Inferred().check(trace)

    assert found.message == "inferred, not recorded: collectives"
    assert found.evidence == {"collectives": 1}


def test_what_was_recorded_is_clean() -> None:
    assert Inferred().check(trace_of(steps=[{"step": 1, "kind": "decode"}])) == []
