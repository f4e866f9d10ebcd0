"""STV003: the bucket of the oldest request is not chosen, many times running."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv003_bucket_starved import BucketStarved
from tests.analyzers.rows import Row, decision, event
from tests.traces import trace_of

ARRIVALS = [event("old", "arrive", 0), event("young", "arrive", 1)]


def choices(chosen: Iterable[str]) -> list[Row]:
    """A choice a step between the bucket of `old` and that of `young`."""
    rows = []
    for step, winner in enumerate(chosen, 10):
        for request in ("old", "young"):
            verdict = "chosen" if request == winner else "passed-over"
            instead = None if request == winner else f"bucket of {winner}"
            rows.append(
                decision(
                    "bucket", f"bucket of {request}", verdict, step, holder=request, instead=instead
                )
            )
    return rows


def starved(chosen: Iterable[str], max_misses: int = 3) -> list[Finding]:
    trace = trace_of(lifecycle=ARRIVALS, decisions=choices(chosen))
    return BucketStarved(max_misses=max_misses).check(trace)


def test_the_oldest_passed_over_too_often_is_found() -> None:
    (found,) = starved(["young"] * 4)

    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("old", 10, 10, 13)
    assert found.message == (
        "the bucket of old, the oldest that competed, was passed over 4 times running "
        "(steps 10 to 13), last for bucket of young"
    )


def test_a_choice_in_between_ends_the_streak() -> None:
    assert starved(["young"] * 3 + ["old"] + ["young"] * 3) == []


def test_streaks_of_one_request_are_one_finding_placed_at_the_longest() -> None:
    (found,) = starved(["young"] * 4 + ["old"] + ["young"] * 5)

    assert (found.count, found.step) == (2, 15)
    assert found.evidence["longest streak"] == 5
    assert found.evidence["times passed over in streaks"] == 9


def test_passing_over_the_younger_is_clean() -> None:
    assert starved(["old"] * 40) == []


def test_decisions_about_something_else_than_buckets_are_clean() -> None:
    rows = [decision("request", "old", "passed-over", step) for step in range(40)]

    assert BucketStarved().check(trace_of(lifecycle=ARRIVALS, decisions=rows)) == []
