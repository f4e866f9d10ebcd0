"""Who is asked about may be another rank's: it is found there, said so, and gone to there."""

from __future__ import annotations

import pytest

from stepscope.app.debug import Session
from stepscope.app.debug.commands import run
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.debugger.why_anywhere import ranks_of, why_anywhere
from stepscope.app.debug.shown.why_blocks import known_why, why_blocks
from stepscope.app.present.blocks import AtChange, Fact
from stepscope.app.present.plain_text import lines
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import waiting_on_rank_one


@pytest.fixture(scope="module")
def trace() -> Trace:
    return waiting_on_rank_one()


def test_the_ranks_that_have_somebody_are_found(trace: Trace) -> None:
    assert ranks_of(trace, "late") == (1,)
    assert ranks_of(trace, "early") == (0,)
    assert ranks_of(trace, "task 7") == (1,)
    assert ranks_of(trace, "nobody") == ()


def test_who_waits_on_another_rank_is_found_there_and_it_says_whose_he_is(trace: Trace) -> None:
    debugger = Debugger(trace)
    debugger.goto("2")

    told = lines(run(debugger, "why late").blocks)

    assert told[0].startswith("late of rank 1, as rank 0 has none such: ")
    assert "too few blocks" in told[1]
    assert told[-1].startswith("goto #")
    assert debugger.rank == 0


def test_the_way_that_is_told_leads_to_the_row_in_its_rank(trace: Trace) -> None:
    debugger = Debugger(trace)
    debugger.goto("2")
    told = lines(run(debugger, "why late").blocks)

    run(debugger, told[-1])

    assert debugger.rank == 1
    assert debugger.position.seq == int(told[-1].split()[1][1:])


def test_a_rank_that_has_him_itself_is_asked_first(trace: Trace) -> None:
    session = Session(trace, 1)
    session.goto(step=2)

    chain = why_anywhere(session, "late", session.position, lambda rank: Session(trace, rank))

    assert chain.elsewhere is None
    assert chain.first_line.startswith("late: ")


def test_links_of_both_fronts_lead_to_the_rank_that_has_him(trace: Trace) -> None:
    session = Session(trace, 0)
    session.goto(step=2)
    chain = known_why(session, "late")

    assert chain
    targets = [block.to for block in why_blocks(chain) if isinstance(block, Fact) and block.to]
    assert targets
    assert {to.rank for to in targets if isinstance(to, AtChange)} == {1}


def test_whom_no_rank_has_is_still_nobody(trace: Trace) -> None:
    debugger = Debugger(trace)

    with pytest.raises(ConfigError, match="the trace has no request 'nobody'"):
        run(debugger, "why nobody")


def test_a_place_of_a_rank_that_is_not_there_moves_nothing(trace: Trace) -> None:
    debugger = Debugger(trace)
    before = debugger.position

    for place in ("2 of rank 7", "99 of rank 1"):
        with pytest.raises(ConfigError):
            debugger.goto(place)
        assert (debugger.rank, debugger.position) == (0, before)
