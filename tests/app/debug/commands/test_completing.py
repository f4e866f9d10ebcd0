"""What may be typed next is of the trace at hand, and safe to show."""

from __future__ import annotations

import pytest

from stepscope.app.debug.commands.completing import completions
from stepscope.app.debug.debugger import Debugger
from tests.app.debug.small_traces import a_fight_for_a_block
from tests.looped import looped
from tests.traces import trace_of


@pytest.fixture(scope="module")
def debugger() -> Debugger:
    return Debugger(a_fight_for_a_block())


@looped(
    ("typed", "expected"),
    [
        ("rw", "rwatch"),
        ("break pre", "preempt"),
        ("break preempt ", "a"),
        ("break steps: num_w", "num_waiting"),
        ("break steps: num_waiting > 2 and kv_blocks_f", "kv_blocks_free"),
        ("trace preempt => by_", "by_request"),
        ("break request ", "b"),
        ("break finding KVB00", "KVB001"),
        ("print wai", "waiting"),
        ("goto st", "start"),
        ("why ", "c"),
        ("value num_w", "num_waiting"),
        ("sql select num_waiting from ste", "steps"),
        ("help ba", "back"),
    ],
)
def test_a_word_is_completed_by_what_may_stand_there(
    debugger: Debugger, typed: str, expected: str
) -> None:
    found = {each.word: each.replaces for each in completions(debugger, typed)}

    assert expected in found
    assert expected.startswith(typed[len(typed) - found[expected] :])


@looped("typed", ["nothing ", "goto 5 ", "where x", "step "])
def test_nothing_is_offered_where_nothing_is_known(debugger: Debugger, typed: str) -> None:
    assert completions(debugger, typed) == []


def test_a_name_that_a_terminal_would_not_show_is_not_offered() -> None:
    arrive = {"step": 1, "ts_ns": 90, "event": "arrive"}
    names = ("plain", "\x1b[31m")
    trace = trace_of(lifecycle=[{**arrive, "request": name} for name in names])

    assert [each.word for each in completions(Debugger(trace), "why ")] == ["plain"]
