"""STV001: a request waits past its deadline or far beyond its share while others finish."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv001_request_starved import RequestStarved
from stepscope.engine.runs.scenario import Options
from tests.analyzers.rows import Row, event, life
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.traces import trace_of

OTHER = life("other", 1, 2, 30)


def starved(*rows: Row, rule: RequestStarved | None = None) -> list[Finding]:
    return (rule or RequestStarved()).check(trace_of(lifecycle=rows))


def test_a_request_that_finishes_after_its_deadline_is_found() -> None:
    (found,) = starved(*OTHER, *life("late", 0, 80, 90, deadline_ns=50))

    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("late", 0, 0, 80)
    assert found.message == (
        "late finished 40 ns after its deadline: it waited 80 ns in the queue and was preempted "
        "0 times while 1 other finished"
    )


def test_a_request_that_is_still_there_after_its_deadline_is_found() -> None:
    rows = [event("lost", "arrive", 0, deadline_ns=50), event("other", "first-token", 99)]

    (found,) = starved(*OTHER, *rows)

    assert found.evidence["outcome"] == "still there at the end of the trace"
    assert found.evidence["waited_ns"] == 99


def test_spans_without_batches_are_judged_by_their_events_and_say_nothing_of_preemptions() -> None:
    told = [*life("slow", 0, 90, 95), *life("first", 1, 2, 10), *life("second", 2, 10, 20)]
    trace = trace_of(lifecycle=told, tables={"lifecycle": "inferred"})

    (found,) = RequestStarved().check(trace)

    assert found.message == (
        "slow waited 9.0 times its fair share of 10 ns: it waited 90 ns in the queue while "
        "2 others finished"
    )
    assert "times preempted" not in found.evidence


def test_a_long_request_without_a_recorded_admission_is_not_said_to_have_waited() -> None:
    told = [
        event("long", "arrive", 0), event("long", "first-token", 3), event("long", "finish", 90),
        *life("first", 1, 2, 10), *life("second", 2, 10, 20),
    ]  # fmt: skip

    assert starved(*told) == []


@looped(("ended_at", "count"), [(40, 0), (50, 1)])
def test_an_abort_counts_only_from_the_deadline_on(ended_at: int, count: int) -> None:
    rows = [event("r", "arrive", 0, deadline_ns=50), event("r", "abort", ended_at, cause="gone")]

    found = starved(*OTHER, *rows, event("other", "first-token", 99))

    assert [each.evidence["outcome"] for each in found] == ["abort: gone"] * count


@looped(("rejected_at", "count"), [(0, 0), (10, 1)])
def test_a_reject_counts_when_the_request_had_waited(rejected_at: int, count: int) -> None:
    rows = [event("r", "arrive", 0, deadline_ns=15), event("r", "reject", rejected_at)]

    assert len(starved(*OTHER, *rows, *life("second", 3, 4, 8))) == count


def test_time_in_batches_is_evidence_and_waits_between_preemptions_add_up() -> None:
    rows = [
        event("r", "arrive", 0, deadline_ns=50), event("r", "admit", 10), event("r", "preempt", 20),
        event("r", "resume", 60), event("r", "finish", 100),
    ]  # fmt: skip
    steps = [{"step": step, "ts_ns": step, "dur_ns": 10, "kind": "decode"} for step in (10, 60)]
    batch = [
        {"step": step, "request": "r", "phase": "decode", "num_tokens": 1} for step in (10, 60)
    ]
    trace = trace_of(lifecycle=[*OTHER, *rows], steps=steps, batch_rows=batch)

    (found,) = RequestStarved().check(trace)

    assert (found.ts_ns, found.end_ns) == (20, 60)
    assert (found.evidence["served_ns"], found.evidence["waited_ns"]) == (20, 50)
    assert found.evidence["times preempted"] == 1


def test_a_request_is_placed_where_it_ran_and_was_left_out_of_every_batch_longest() -> None:
    rows = [
        event("r", "arrive", 0, deadline_ns=50), event("r", "admit", 10), event("r", "abort", 100),
    ]  # fmt: skip
    steps = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(1, 10)]
    batch = [{"step": 1, "request": "r", "phase": "decode", "num_tokens": 1}]

    (found,) = RequestStarved().check(
        trace_of(lifecycle=[*OTHER, *rows], steps=steps, batch_rows=batch)
    )

    assert (found.step, found.ts_ns, found.end_ns) == (2, 20, 100)
    assert found.evidence["longest_in_no_batch_ns"] == 80


def test_a_request_without_a_deadline_that_waits_many_fair_shares_is_found() -> None:
    rows = [*life("1", 0, 90, 99), *life("2", 1, 2, 10), *life("3", 2, 3, 20)]

    (found,) = starved(*rows)

    assert found.request == "1"
    assert "waited 9.0 times its fair share of 10 ns" in found.message


def test_just_as_many_fair_shares_as_are_allowed_are_clean() -> None:
    rows = [*life("1", 0, 90, 99), *life("2", 1, 2, 10), *life("3", 2, 3, 20)]
    trace = trace_of(lifecycle=rows)

    assert RequestStarved(max_shares=9).check(trace) == []
    assert len(RequestStarved(max_shares=8.9).check(trace)) == 1


def test_first_come_first_served_is_clean_whatever_the_lengths() -> None:
    rows = [*life("1", 0, 0, 500), *life("2", 1, 500, 510), *life("3", 2, 510, 900)]

    assert starved(*rows) == []


def test_a_late_request_that_did_not_wait_is_slow_and_not_starved() -> None:
    assert starved(*life("slow", 0, 1, 90, deadline_ns=50)) == []


def test_where_nobody_finishes_by_its_deadline_everybody_starves() -> None:
    rows = [event(name, "arrive", 0, deadline_ns=50) for name in ("a", "b")]
    dropped = [event(name, "abort", 60, cause="gone") for name in ("a", "b")]

    found = starved(*rows, *dropped)

    assert [each.request for each in found] == ["a", "b"]
    assert "waited 60 ns in the queue and was preempted 0 times while nobody else finished" in (
        found[0].message
    )


def test_one_alone_that_was_let_in_and_left_out_of_batches_starved() -> None:
    rows = [
        event("r", "arrive", 0, deadline_ns=50),
        event("r", "admit", 0),
        event("r", "abort", 60),
    ]
    steps = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(6)]

    def seen(num_batches: int) -> list[Finding]:
        batch = [
            {"step": n, "request": "r", "phase": "decode", "num_tokens": 1}
            for n in range(num_batches)
        ]
        return RequestStarved().check(trace_of(lifecycle=rows, steps=steps, batch_rows=batch))

    assert [len(seen(num)) for num in (1, 2, 3, 6)] == [1, 1, 0, 0]


def test_one_alone_that_is_computed_again_and_again_gets_no_further_and_starved() -> None:
    rows = [event("r", "arrive", 0, deadline_ns=50), event("r", "abort", 60)]
    steps = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "prefill"} for n in range(6)]

    def seen(num_again: int) -> list[Finding]:
        batch = [
            {"step": n, "request": "r", "phase": "prefill", "num_tokens": 1,
             "is_recompute": n < num_again}
            for n in range(6)
        ]  # fmt: skip
        return RequestStarved().check(trace_of(lifecycle=rows, steps=steps, batch_rows=batch))

    assert [len(seen(num)) for num in (0, 3, 4)] == [0, 0, 1]
    (found,) = seen(4)
    assert "was in a batch for 60 ns of 60 ns, 40 ns of them to compute again" in found.message
    assert (found.evidence["served_ns"], found.evidence["recomputed_ns"]) == (60, 40)


def test_how_much_of_its_time_it_has_to_wait_is_a_threshold() -> None:
    rows = life("r", 0, 30, 90, deadline_ns=50)

    assert starved(*rows) == []
    assert len(starved(*rows, rule=RequestStarved(waited_share=0.3))) == 1


def test_a_late_request_without_others_and_without_a_deadline_has_no_measure() -> None:
    assert starved(event("r", "arrive", 0), event("r", "abort", 90)) == []


def test_a_request_that_meets_its_deadline_is_clean_however_long_it_waited() -> None:
    rows = [*life("1", 0, 90, 99, deadline_ns=100), *life("2", 1, 2, 10), *life("3", 2, 3, 20)]

    assert starved(*rows) == []


@looped("max_tokens", ["30", "50", "100", "200"])
def test_a_request_that_needs_what_all_before_it_hold_is_not_starved(
    recorded_once: RecordedOnce, max_tokens: str
) -> None:
    settings = {"workload": "heavy-head", "max_tokens": max_tokens}
    trace = recorded_once.trace("waiting-queue", "after", Options(settings=settings))

    assert RequestStarved().check(trace) == []
