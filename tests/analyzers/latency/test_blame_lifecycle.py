"""Blame of requests of which no batch is recorded: their phases by their lifecycle."""

from __future__ import annotations

from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event
from tests.traces import trace_of

SERVED = (
    event("r", "arrive", 0), event("r", "admit", 30), event("r", "first-token", 40),
    event("r", "preempt", 60), event("r", "resume", 75), event("r", "finish", 100),
)  # fmt: skip


def spent(trace: Trace) -> dict[str, int]:
    return {cause.cause.name: cause.total_ns for cause in blame(trace).totals()}


def test_phases_are_between_the_events_of_a_request() -> None:
    trace = trace_of(lifecycle=list(SERVED))

    assert spent(trace) == {"waiting": 30, "prefill": 10, "decode": 45, "preempted": 15}
    assert any(
        note.startswith("no batches of 1 request are recorded") for note in blame(trace).notes
    )


def test_a_request_without_a_first_token_is_in_prefill_if_others_have_one() -> None:
    others = [event("q", "arrive", 10), event("q", "admit", 20), event("q", "abort", 90)]

    trace = trace_of(lifecycle=[*SERVED, *others])

    rows = {row["request"]: row for row in blame(trace).requests.to_dicts()}
    assert (rows["q"]["waiting_ns"], rows["q"]["prefill_ns"], rows["q"]["decode_ns"]) == (10, 70, 0)


def test_where_no_first_token_is_recorded_running_time_is_unknown() -> None:
    rows = [row for row in SERVED if row["event"] != "first-token"]

    assert spent(trace_of(lifecycle=rows)) == {"waiting": 30, "preempted": 15, "unknown": 55}


def test_without_an_admission_the_time_before_the_first_token_is_unknown() -> None:
    trace = trace_of(lifecycle=[row for row in SERVED[:3] if row["event"] != "admit"] + [SERVED[5]])

    assert spent(trace) == {"decode": 60, "unknown": 40}
    assert {
        "no batches of 1 request are recorded: decode is the time from the first token to the end",
        "when 1 request was admitted is not recorded: whether the time before the first token was "
        "queue or prefill is unknown",
        "40.0% is unknown: the admission of requests is not recorded",
    } < set(blame(trace).notes)


def test_requests_of_batches_alone_are_counted_until_their_last_batch_and_said_to_be() -> None:
    steps = [{"step": n, "kind": "decode", "ts_ns": 100 * n, "dur_ns": 50} for n in range(3)]
    rows = [
        {"step": n, "ts_ns": 100 * n, "request": request, "phase": "decode", "num_tokens": 1}
        for n, request in ((0, "a"), (1, "a"), (0, "b"), (1, "b"), (2, "b"))
    ]
    blamed = blame(trace_of(steps=steps, batch_rows=rows))

    assert dict(blamed.requests.select("request", "latency_ns").rows()) == {"a": 150, "b": 250}
    assert {
        "2 requests without an arrival: counted from the first event or row",
        "2 requests without any event: counted until the end of the last batch that each was in; "
        "what happened to them after that is not recorded",
    } < set(blamed.notes)


def test_a_request_that_was_still_there_is_counted_until_the_end_of_the_trace() -> None:
    told = [event("r", "arrive", 0), event("r", "admit", 5), event("q", "arrive", 0)]
    steps = [{"step": 1, "kind": "decode", "ts_ns": 0, "dur_ns": 90}]

    blamed = blame(trace_of(lifecycle=told, steps=steps))

    assert blamed.requests["latency_ns"].to_list() == [90, 90]
    assert "2 requests without an end: counted until the end of the trace" in blamed.notes


def test_a_request_in_no_recorded_batch_of_a_recording_is_not_called_prefill_or_decode() -> None:
    steps = [{"step": 1, "kind": "decode", "ts_ns": 0, "dur_ns": 100}]
    row = {"step": 1, "ts_ns": 0, "request": "other", "phase": "decode", "num_tokens": 1}

    causes = spent(trace_of(lifecycle=list(SERVED), steps=steps, batch_rows=[row]))

    assert not causes.keys() & {"prefill"}
    assert causes["decode"] == 100  # of the other request


def test_a_queue_without_decisions_is_waiting_and_with_decisions_has_their_reason() -> None:
    steps = [{"step": 1, "kind": "decode", "ts_ns": 0, "dur_ns": 100}]
    decision = {
        "step": 1, "ts_ns": 5, "subject_kind": "request", "subject": "r", "verdict": "deferred",
        "resource": "kv-block",
    }  # fmt: skip

    recorded = spent(trace_of(lifecycle=list(SERVED), steps=steps, decisions=[decision]))

    assert recorded["no-blocks"] == 25
    assert "waiting" not in recorded


def test_steps_without_durations_are_said_to_last_until_the_next() -> None:
    steps = [{"step": n, "kind": "decode", "ts_ns": 20 * n, "dur_ns": None} for n in range(5)]

    without = blame(trace_of(lifecycle=list(SERVED), steps=steps)).notes
    recorded = [{**row, "dur_ns": 20} for row in steps]
    with_them = blame(trace_of(lifecycle=list(SERVED), steps=recorded)).notes

    assert [note for note in without if note.startswith("4 steps without a duration")]
    assert not [note for note in with_them if "without a duration" in note]
