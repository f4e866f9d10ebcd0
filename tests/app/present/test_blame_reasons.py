"""Why a request waited: what was decided about it, and about the head that it stood behind."""

from __future__ import annotations

from stepscope.analyzers.latency.blame import blame
from stepscope.app.present.blame_reasons import reasons, waits_of
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, decision, event
from tests.tiers import slow
from tests.traces import trace_of

LACKS = {"resource": "kv-block", "reason": "too few", "needed": 3, "available": 1}
BEHIND = {"resource": "queue", "reason": "behind the head", "holder": "head"}


def of_three(*decisions: Row) -> Trace:
    """The head of a queue, the next, and one far behind, who wait from 0 to 90."""
    names = ("head", "next", "far")
    events = [
        event(each, what, at) for each in names for what, at in (("arrive", 0), ("abort", 90))
    ]
    return trace_of(
        steps=[{"step": 0, "dur_ns": 90, "kind": "decode"}],
        lifecycle=events,
        decisions=list(decisions),
    )


def told(trace: Trace, request: str) -> list[str]:
    return reasons(trace, waits_of(blame(trace, request).intervals))


@slow
def test_who_stands_behind_the_head_is_told_what_that_lacked() -> None:
    trace = of_three(
        decision("request", "head", "deferred", 0, **LACKS),
        decision("request", "next", "deferred", 0, **BEHIND),
    )

    lacked = "head was deferred: too few, kv-block needs 3, 1 available"
    assert told(trace, "next") == [f"deferred: behind the head, held by head; {lacked}"]
    assert told(trace, "far") == [lacked]


def test_what_is_not_known_of_the_head_is_not_said() -> None:
    trace = of_three(decision("request", "next", "deferred", 0, **BEHIND))

    assert told(trace, "next") == ["deferred: behind the head, held by head"]
    assert told(trace, "far") == [""]


def test_what_was_decided_about_itself_is_all_that_is_said_of_the_head() -> None:
    trace = of_three(
        decision("request", "head", "deferred", 0, **LACKS),
        decision("request", "next", "deferred", 0, **BEHIND),
    )

    assert told(trace, "head") == ["deferred: too few, kv-block needs 3, 1 available"]


def test_who_is_behind_a_head_that_its_own_decision_does_not_name_is_told_of_the_last_named() -> (
    None
):
    trace = of_three(
        decision("request", "head", "deferred", 0, **LACKS),
        decision("request", "next", "deferred", 0, **BEHIND),
        decision("request", "far", "deferred", 0, **{**BEHIND, "holder": None}),
    )

    lacked = "head was deferred: too few, kv-block needs 3, 1 available"
    assert told(trace, "far") == [f"deferred: behind the head; {lacked}"]
