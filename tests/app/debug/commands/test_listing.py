"""`list` shows where the policy took the last decision, or says why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.debug.commands import run
from stepscope.app.debug.commands.completing import completions
from stepscope.app.debug.debugger import Debugger
from stepscope.app.present.plain_text import lines
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import a_fight_for_a_block
from tests.looped import looped
from tests.traces import trace_of

DECIDED = {"ts_ns": 5, "step": 1, "subject_kind": "request", "subject": "a", "verdict": "deferred"}
STEPS = [{"step": 1, "ts_ns": 9, "kind": "decode", "dur_ns": 2}]


def listed(debugger: Debugger, *typed: str) -> list[str]:
    """What the last of some lines prints."""
    for line in typed[:-1]:
        run(debugger, line)
    return lines(run(debugger, typed[-1]).blocks)


@pytest.fixture
def debugger(sample_traces: Path) -> Debugger:
    made = Debugger(Trace.open(sample_traces / "fcfs-preemption-before.trace"))
    run(made, "goto 67")
    return made


def test_the_line_that_decided_is_in_the_middle(debugger: Debugger) -> None:
    decision, stack, *source = listed(debugger, "list")

    assert decision.startswith("decisions: verdict=preempted subject=req-29")
    assert stack.startswith("engine/schedulers/bucketed.py: schedule:")
    assert [part.partition(":")[0] for part in stack.split(" > ")[1:]] == ["_decode", "_set_aside"]
    assert len(source) == 9
    assert source[4].startswith("→")
    assert "yield Preempt(request, OTHER_BUCKET" in source[4]


def test_a_caller_is_shown_by_its_name(debugger: Debugger) -> None:
    source = listed(debugger, "list _decode")[2:]

    assert "yield from self._set_aside(running, chosen)" in source[4]
    with pytest.raises(ConfigError, match="the decision was not taken in _prefill"):
        run(debugger, "list _prefill")


def test_functions_of_the_site_are_completed(debugger: Debugger) -> None:
    assert [each.word for each in completions(debugger, "list _")] == ["_decode", "_set_aside"]
    assert completions(Debugger(a_fight_for_a_block()), "list ") == []


def test_a_program_is_told_file_line_and_source(debugger: Debugger) -> None:
    facts = run(debugger, "list").facts

    assert facts["file"] == "engine/schedulers/bucketed.py"
    assert "yield Preempt" in facts["source"][str(facts["line"])]
    assert facts["decision"]["site"] == facts["site"]


def test_a_change_says_in_which_functions_it_was_decided(debugger: Debugger) -> None:
    run(debugger, "break decisions: subject = 'req-01' and verdict = 'preempted'")

    assert "    in schedule > _decode > _set_aside" in listed(debugger, "rc")
    assert "  in schedule > _decode > _choose" in listed(debugger, "goto 66", "stepi", "stepi")


def test_a_decision_whose_site_is_not_recorded_says_so() -> None:
    debugger = Debugger(trace_of(steps=STEPS, decisions=[DECIDED]))

    assert listed(debugger, "list")[-1] == "where it was taken is not recorded"
    assert run(debugger, "list").facts["site"] is None


def test_without_a_decision_nothing_is_shown() -> None:
    debugger = Debugger(trace_of(steps=STEPS))

    assert listed(debugger, "list") == ["no decision up to here is recorded"]


@looped("site", ["/etc/hosts:1", "/etc/passwd.py: a+1 [00000000]", "x \x1b[2J"])
def test_no_file_is_read_that_a_trace_names_outside_of_the_package(site: str) -> None:
    debugger = Debugger(trace_of(steps=STEPS, decisions=[{**DECIDED, "site": site}]))

    shown = listed(debugger, "list")
    assert shown[-1].startswith("not shown: ")
    assert len(shown) == 3
    assert "\x1b" not in "".join(shown)
