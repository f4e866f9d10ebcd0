"""What can be stopped at: conditions, events, findings and things that are watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops import KINDS
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import a_fight_for_a_block


@pytest.mark.parametrize(
    ("wanted", "num_hits"),
    [
        ("steps: num_waiting > 2", 2),
        ("decisions: verdict = 'deferred'", 1),
        ("preempt", 1),
        ("preempt a", 1),
        ("preempt b", 0),
        ("deferred c", 1),
        ("claim", 2),
        ("claim b", 1),
        ("block 5", 3),
        ("block 6", 0),
        ("request a", 3),
        ("request c", 2),
        ("holds: owner = 'b' and to_ns is null", 1),
        ("turns: num_steps = 2", 2),
        ("occupancy: num_held = 0", 1),
    ],
)
def test_a_stop_has_as_many_hits_as_rows_that_meet_it(wanted: str, num_hits: int) -> None:
    assert len(Debugger(a_fight_for_a_block()).find(wanted)) == num_hits


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("stepz: a > 1", "no table 'stepz'; did you mean steps?"),
        ("steps: num_wait > 1", "no column 'num_wait'; did you mean num_waiting?"),
        ("steps: num_waiting + 1", "must be of type `Boolean`"),
        ("steps: num_waiting >", "the query does not run"),
        ("steps: read_csv('/etc/passwd') = 1", "not allowed"),
        ("request d", "no request 'd'"),
        ("block five", "not a number; write it like block 5"),
        ("core 1", "not recorded: the trace has no row of core_spans"),
        ("finding ABC001", "no rule ABC001"),
        ("finding COR001", "COR001 is not applicable: the trace does not have"),
        ("nonsense", "no such stop; it can be TABLE: CONDITION"),
        ("", "nothing: no such stop"),
    ],
)
def test_what_cannot_be_stopped_at_is_said_in_a_line(wanted: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Debugger(a_fight_for_a_block()).find(wanted)

    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_findings_are_stopped_at_where_check_finds_them(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "fcfs-preemption-before.trace")
    codes = {finding.code for finding in check(trace).findings}
    debugger = Debugger(trace)

    for code in codes:
        stop = debugger.find(f"finding {code}")
        hit = stop.after(debugger.here) or stop.before(debugger.here)
        assert hit
        assert stop.row(hit, debugger.tables)["code"] == code


def test_every_kind_of_stop_has_words_that_complete_it_in_a_trace() -> None:
    tables = Debugger(a_fight_for_a_block()).tables

    for kind in KINDS:
        assert list(kind.words(tables))
        assert all(form and meaning for form, meaning in kind.usage)


def test_a_trace_point_prints_expressions_over_the_columns() -> None:
    debugger = Debugger(a_fight_for_a_block())
    stop = debugger.add("trace", "steps: num_waiting > 2", ("step", "num_waiting * 10 as tenfold"))

    hits = debugger.traced(debugger.here, debugger.here_of(0, debugger.position_of("end")))

    assert [dict(stop.row(hit, debugger.tables)) for hit in hits] == [
        {"step": 3, "tenfold": 30},
        {"step": 4, "tenfold": 40},
    ]
