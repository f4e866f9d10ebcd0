"""STV002: an older request is preempted or passed over for a younger."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv002_fcfs_inversion import FcfsInversion
from tests.analyzers.rows import Row, decision, event, life
from tests.looped import looped
from tests.traces import trace_of


def inversions(*rows: Row, decisions: list[Row] | None = None) -> list[Finding]:
    return FcfsInversion().check(trace_of(lifecycle=rows, decisions=decisions or []))


def test_an_older_request_preempted_for_a_younger_is_found() -> None:
    arrivals = [event("old", "arrive", 0), event("young", "arrive", 1)]
    admitted = [event("old", "admit", 2), event("young", "admit", 3)]
    preempted = [event("old", "preempt", t, by_request="young") for t in (5, 9)]

    (found,) = inversions(*arrivals, *admitted, *preempted, event("old", "resume", 7))

    assert (found.request, found.count, found.ts_ns, found.end_ns) == ("old", 2, 5, 9)
    assert found.message == (
        "old gave way 2 times to younger requests: preempted 2 times, passed over 0 times, "
        "first preempted for young"
    )


def test_a_younger_request_preempted_for_an_older_is_clean() -> None:
    arrivals = [event("old", "arrive", 0), event("young", "arrive", 1)]
    preempted = event("young", "preempt", 5, by_request="old")

    assert inversions(*arrivals, preempted) == []


def test_a_request_that_preempts_itself_is_clean() -> None:
    assert inversions(event("r", "arrive", 0), event("r", "preempt", 5, by_request="r")) == []


def test_an_older_request_admitted_after_a_younger_is_found() -> None:
    rows = [*life("1", 0, 50, 60), *life("2", 1, 20, 30), *life("3", 2, 40, 55)]

    (found,) = inversions(*rows)

    assert (found.request, found.ts_ns) == ("1", 20)
    assert found.evidence["first"] == "passed over for 2"


def test_an_older_request_that_was_never_admitted_is_found() -> None:
    rows = [event("1", "arrive", 0), *life("2", 1, 20, 30)]

    assert [found.request for found in inversions(*rows)] == ["1"]


def test_admission_in_order_of_arrival_is_clean() -> None:
    rows = [*life("1", 0, 10, 60), *life("2", 1, 10, 30), *life("3", 2, 40, 55)]

    assert inversions(*rows) == []


def test_arrivals_of_one_moment_are_ordered_by_the_number_of_the_request() -> None:
    in_order = [*life("r2", 0, 10, 60), *life("r10", 0, 20, 70)]
    against = [*life("r2", 0, 20, 60), *life("r10", 0, 10, 70)]

    assert inversions(*in_order) == []
    assert [found.request for found in inversions(*against)] == ["r2"]


def test_arrivals_of_one_moment_are_ordered_by_their_places_in_the_queue() -> None:
    in_order = [*life("r3", 0, 20, 60, queue_index=2), *life("r5", 0, 10, 70, queue_index=1)]
    against = [*life("r3", 0, 20, 60, queue_index=1), *life("r5", 0, 10, 70, queue_index=2)]

    assert inversions(*in_order) == []
    assert [found.request for found in inversions(*against)] == ["r3"]


def test_priority_goes_before_arrival() -> None:
    rows = [*life("1", 0, 50, 60, priority=1), *life("2", 1, 20, 30, priority=0)]

    assert inversions(*rows) == []


def test_a_preempted_request_left_out_while_a_younger_comes_in_is_found() -> None:
    old = [event("old", "arrive", 0), event("old", "admit", 1), event("old", "preempt", 10)]
    young = [event("young", "arrive", 5), event("young", "admit", 20)]
    left_out = decision("request", "old", "deferred", 20, resource="bucket")

    (found,) = inversions(*old, *young, event("young", "finish", 30), decisions=[left_out])

    assert (found.request, found.ts_ns, found.evidence["first"]) == (
        "old", 20, "passed over for young",
    )  # fmt: skip


@looped(
    ("resource", "count"), [(None, 0), ("grammar", 0), ("lora", 0), ("bucket", 1), ("kv-block", 1)]
)
def test_an_older_request_that_is_not_ready_is_not_passed_over(
    resource: str | None, count: int
) -> None:
    rows = [*life("1", 0, 50, 60), *life("2", 1, 20, 30)]
    told = decision("request", "1", "deferred", 10, reason="its grammar", resource=resource)

    assert len(inversions(*rows, decisions=[told])) == count


@looped(("resource", "count"), [("stale-output", 0), ("kv-block", 1)])
def test_a_preempted_request_that_is_not_ready_again_is_not_passed_over(
    resource: str, count: int
) -> None:
    old = [event("old", "arrive", 0), event("old", "admit", 1), event("old", "preempt", 10)]
    young = [event("young", "arrive", 5), event("young", "admit", 20)]
    left_out = decision("request", "old", "deferred", 20, resource=resource)
    later = event("young", "finish", 30)

    assert len(inversions(*old, *young, later, decisions=[left_out])) == count


@looped(("order", "count"), [(["2", "1"], 0), (["1", "2"], 1)])
def test_nobody_is_passed_over_by_who_stood_before_it_when_the_queue_was_sorted(
    order: list[str], count: int
) -> None:
    lives = [*life("1", 0, 50, 60), *life("2", 1, 20, 30)]
    rows = [
        {"step": 2, "ts_ns": 15, "index": place, "request": name}
        for place, name in enumerate(order)
    ]

    found = FcfsInversion().check(trace_of(lifecycle=lives, queue_order=rows))

    assert len(found) == count


def test_an_order_that_the_queue_had_before_it_was_sorted_again_holds_no_longer() -> None:
    lives = [*life("1", 0, 50, 60), *life("2", 1, 20, 30)]
    rows = [
        {"step": 2, "ts_ns": 12, "index": 0, "request": "2"},
        {"step": 2, "ts_ns": 12, "index": 1, "request": "1"},
        {"step": 2, "ts_ns": 15, "index": 0, "request": "1"},
        {"step": 2, "ts_ns": 15, "index": 1, "request": "2"},
    ]

    assert len(FcfsInversion().check(trace_of(lifecycle=lives, queue_order=rows))) == 1


def test_an_older_request_that_was_ready_again_before_is_passed_over() -> None:
    rows = [*life("1", 0, 50, 60), *life("2", 1, 20, 30)]
    told = [
        decision("request", "1", "deferred", 10, reason="its grammar is being compiled"),
        decision("request", "1", "deferred", 15, resource="kv-block", needed=9, available=3),
    ]

    assert len(inversions(*rows, decisions=told)) == 1


def test_a_preempted_request_whose_output_is_under_way_is_not_passed_over() -> None:
    old = [event("old", "arrive", 0), event("old", "admit", 1), event("old", "preempt", 20)]
    young = [event("young", "arrive", 5), event("young", "admit", 20)]
    told = decision("request", "old", "deferred", 20, reason="its output is still in flight")

    assert inversions(*old, *young, decisions=[told]) == []


def test_to_be_preempted_for_a_younger_that_comes_in_at_once_counts_once() -> None:
    old = [
        event("old", "arrive", 0),
        event("old", "admit", 1),
        event("old", "preempt", 20, step=2, by_request="young"),
    ]
    young = [event("young", "arrive", 5), event("young", "admit", 20, step=2)]
    left_out = decision(
        "request", "old", "deferred", 20, step=2, resource="kv-block", needed=4, available=1
    )

    (found,) = inversions(*old, *young, event("old", "resume", 40), decisions=[left_out])

    assert (found.count, found.evidence["first"]) == (1, "preempted for young")


def test_a_preempted_request_that_everybody_is_held_behind_is_clean() -> None:
    old = [event("old", "arrive", 0), event("old", "admit", 1), event("old", "preempt", 10)]
    young = [event("young", "arrive", 5), event("old", "resume", 30), event("young", "admit", 30)]
    held = [
        decision("request", "old", "deferred", 20, resource="kv-block", needed=4, available=1),
        decision("request", "young", "deferred", 20, reason="waits behind old"),
    ]

    assert inversions(*old, *young, decisions=held) == []


def test_a_running_request_left_out_of_a_batch_is_not_an_inversion() -> None:
    running = [event("old", "arrive", 0), event("old", "admit", 1)]
    young = [event("young", "arrive", 5), event("young", "admit", 20)]
    left_out = decision("request", "old", "deferred", 20, reason="prompts go first")

    assert inversions(*running, *young, decisions=[left_out]) == []


@looped(("bound", "severity"), [(2, "info"), (1, "warning"), (0, "warning"), (None, "warning")])
def test_to_be_passed_as_often_as_the_engine_is_set_to_allow_is_no_warning(
    bound: int | None, severity: str
) -> None:
    rows = [*life("1", 0, 50, 60), *life("2", 1, 20, 30), *life("3", 2, 40, 55)]
    config = {"scheduler": {"max_passes": bound}}

    (found,) = FcfsInversion().check(trace_of(lifecycle=rows, decisions=[], config=config))

    assert found.severity == severity


def test_to_be_preempted_for_a_younger_is_a_warning_whatever_the_engine_is_set_to() -> None:
    rows = [
        *life("1", 0, 5, 60),
        event("1", "preempt", 10, by_request="2"),
        event("1", "resume", 31),
        *life("2", 1, 20, 30),
    ]
    config = {"scheduler": {"max_passes": 9}}

    (found,) = FcfsInversion().check(trace_of(lifecycle=rows, decisions=[], config=config))

    assert found.severity == "warning"
