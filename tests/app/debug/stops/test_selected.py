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
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


@looped(
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


@looped(
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


@slow
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


def test_a_condition_that_no_row_tells_is_not_recorded() -> None:
    debugger = Debugger(a_fight_for_a_block())

    for wanted in ("steps: kv_blocks_free > 0", "steps: num_waiting > 9 or kv_blocks_free > 0"):
        with pytest.raises(ConfigError, match="not recorded: kv_blocks_free is null throughout"):
            debugger.find(wanted)


def test_a_condition_that_some_rows_do_not_tell_is_not_said_to_be_met_by_none() -> None:
    step = {"step": 1, "ts_ns": 100, "kind": "decode"}
    steps = [{**step, "num_waiting": 1}, {**step, "step": 2, "ts_ns": 200}]
    stop = Debugger(trace_of(steps=steps)).find("steps: num_waiting > 9")

    assert stop.nowhere == "no row is known to meet it, and 1 do not tell"


def test_what_is_known_to_be_false_is_met_by_none_whatever_else_is_not_known() -> None:
    stop = Debugger(a_fight_for_a_block()).find("steps: num_waiting > 9 and kv_blocks_free > 0")

    assert stop.nowhere == "no row of this trace meets it"


@looped("wanted", ["preempt {}", "deferred {}", "claim {}", "watch {}"])
def test_an_event_of_nobody_says_that_there_is_nobody(wanted: str) -> None:
    wanted = wanted.replace("watch", "request")
    with pytest.raises(ConfigError, match="no request 'zz'; it has a, b, c"):
        Debugger(a_fight_for_a_block()).find(wanted.format("zz"))


def test_who_may_have_been_meant_is_named() -> None:
    event = {"step": 1, "ts_ns": 90, "event": "arrive", "queue_index": 0}
    names = [f"req-{number}" for number in range(5000)]
    debugger = Debugger(trace_of(lifecycle=[{**event, "request": name} for name in names]))

    with pytest.raises(ConfigError, match="did you mean req-41"):
        debugger.find("arrive rq-41")
    with pytest.raises(ConfigError, match=r"it has 5,000, such as req-0, req-1, req-10$"):
        debugger.find("arrive somebody")


def test_a_column_of_a_trace_point_is_looked_up_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match="no column 'nope'"):
        Debugger(a_fight_for_a_block()).add("trace", "preempt", ("nope",))


def test_a_block_is_that_of_the_rank_in_which_it_is_asked_for() -> None:
    claim = {"step": 1, "ts_ns": 100, "op": "claim", "resource": "kv-block", "id": 5, "owner": "a"}
    debugger = Debugger(trace_of(allocations=[{**claim, "rank": rank} for rank in (0, 1, 1)]))

    assert len(debugger.find("block 5")) == 1
    assert debugger.add("watch", "block 5").text == "watch block 5 of rank 0"
    assert len(debugger.find("block 5 of rank 1")) == 2

    debugger.switch(1)

    assert len(debugger.find("block 5")) == 2
