"""A line for each column of a recording that has gaps, and for figures of another source."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.views.partial import missing_values, partial, with_whole_rows
from stepscope.ingest.manifest import ReadReport
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.traces import trace_of

STEPS = [
    {"rank": rank, "step": n, "kind": "decode", "dur_ns": 5, "num_decode_reqs": 1}
    for rank in (0, 1)
    for n in range(4)
]


def test_rows_that_have_everything_are_not_spoken_of() -> None:
    assert missing_values(trace_of(steps=STEPS)) == ()


def test_a_required_column_is_missed_even_where_no_row_has_it() -> None:
    steps = [row | {"kind": None} for row in STEPS]

    assert missing_values(trace_of(steps=steps)) == ("steps.kind is missing in 8 of 8 rows",)


def test_a_rank_that_never_recorded_a_column_lacks_nothing() -> None:
    steps = [row if row["rank"] else row | {"num_decode_reqs": None} for row in STEPS]

    assert missing_values(trace_of(steps=steps)) == ()


def test_the_last_step_of_a_rank_may_still_run() -> None:
    running = [row | {"dur_ns": None} if row["step"] == 3 else row for row in STEPS]
    broken = [row | {"dur_ns": None} if row["step"] == 1 else row for row in STEPS]

    assert missing_values(trace_of(steps=running)) == ()
    assert missing_values(trace_of(steps=broken)) == ("steps.dur_ns is missing in 2 of 8 rows",)


def test_other_formats_leave_out_what_they_do_not_know() -> None:
    steps = [row | {"kind": None} for row in STEPS]

    assert missing_values(trace_of(steps=steps, report=ReadReport())) == ()


def test_rows_without_what_says_which_they_are_are_left_out_and_still_missed() -> None:
    steps = [row if row["step"] else row | {"step": None} for row in STEPS]
    trace = trace_of(steps=steps)

    whole = with_whole_rows(trace)

    assert whole.num_rows("steps") == 6
    assert not whole.manifest.is_whole("steps")
    assert missing_values(whole) == ("steps.step is missing in 2 of 8 rows",)


def test_a_recording_without_gaps_is_left_as_it_is() -> None:
    trace = trace_of(steps=STEPS)

    assert with_whole_rows(trace) is trace


EVENTS = [
    {"ts_ns": 0, "request": "r", "event": "arrive", "prompt_len": 8, "max_tokens": 2},
    {"ts_ns": 1, "request": "r", "event": "preempt"},
]
ROWS = [{"step": 0, "ts_ns": 0, "request": "r", "phase": "prefill", "num_tokens": 8}]


@looped(
    ("tables", "line"),
    [
        ({"batch_rows": ROWS}, "no lifecycle is recorded"),
        ({"batch_rows": ROWS}, "no steps are recorded"),
        ({"steps": STEPS, "lifecycle": EVENTS}, "no step counts waiting requests"),
        ({"batch_rows": ROWS, "lifecycle": EVENTS}, "no batch says what is computed again"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_figures_that_are_made_of_something_else_say_so(tables: dict[str, Any], line: str) -> None:
    assert [each for each in partial(trace_of(**tables)) if each.startswith(line)]


def test_a_whole_recording_is_not_partial(recorded_once: RecordedOnce) -> None:
    assert partial(recorded_once.trace("fcfs-preemption", "before")) == ()
