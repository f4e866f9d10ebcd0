"""A line for each column of a recording that has values in some rows and should have them in all."""

from __future__ import annotations

from stepscope.analyzers.views.partial import missing_values
from stepscope.ingest.manifest import ReadReport
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
