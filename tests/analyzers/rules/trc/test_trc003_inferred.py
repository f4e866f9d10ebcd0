"""TRC003: kinds or identities were inferred, not recorded."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.findings.finding import Severity
from stepscope.analyzers.rules.trc.trc003_inferred import Inferred
from stepscope.ingest.manifest import ReadReport
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of


def test_inferred_steps_are_counted_per_source() -> None:
    tags = [
        {"step": n, "ts_ns": 10 * n, "kind": "decode", "num_decode_reqs": 2, "inferred": "tag"}
        for n in range(3)
    ]
    logged = {"step": 3, "ts_ns": 30, "kind": "mixed", "num_decode_reqs": 1, "inferred": "log line"}
    recorded = {"step": 4, "ts_ns": 40, "kind": "decode"}

    found = Inferred().check(trace_of(steps=[*tags, logged, recorded]))

    assert [each.message for each in found] == [
        "kind and counts of 1 step were inferred from: log line",
        "kind and counts of 3 steps were inferred from: tag",
    ]
    assert [each.count for each in found] == [1, 3]
    assert {each.severity for each in found} == {Severity.INFO}


@looped(
    ("told", "message"),
    [
        (
            [{}, {}],
            "times alone of 2 steps were inferred from: tag, which tells neither kind nor counts",
        ),
        (
            [{"kind": "decode"}, {"kind": "decode"}],
            "kind of 2 steps were inferred from: tag, which does not tell counts",
        ),
        (
            [{"kind": "decode", "num_decode_tokens": 1}, {"kind": "decode"}, {}],
            "times of 3 steps, kind of 2 and counts of 1 were inferred from: tag",
        ),
    ],
    ids=["neither", "kind", "of some"],
)
def test_what_a_tag_does_not_tell_is_not_called_inferred(told: list[Row], message: str) -> None:
    plain = {"kind": None, "inferred": "tag"}
    steps = [{"step": n, "ts_ns": n, **plain} | more for n, more in enumerate(told)]

    (found,) = Inferred().check(trace_of(steps=steps))

    assert found.message == message
    assert found.evidence["steps of known kind"] == sum("kind" in more for more in told)


def test_a_profiler_step_says_nothing_of_its_batch(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "hta_nccl_data.json.gz")

    told = [found.message for found in Inferred().check(trace)]

    assert told[0] == (
        "times alone of 3 steps were inferred from: ProfilerStep#N, which tells neither kind nor "
        "counts"
    )


def test_inferred_tables_are_named() -> None:
    collective = {"ordinal": 1, "op": "all_reduce"}
    report = ReadReport(inferred={"collectives": 1})
    trace = trace_of(collectives=[collective], tables={"collectives": "inferred"}, report=report)

    (found,) = Inferred().check(trace)

    assert found.message == "inferred, not recorded: collectives"
    assert found.evidence == {"collectives": 1}


def test_what_was_recorded_is_clean() -> None:
    assert Inferred().check(trace_of(steps=[{"step": 1, "kind": "decode"}])) == []
