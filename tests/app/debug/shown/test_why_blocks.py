"""A chain as blocks: what both fronts show, and where each link leads."""

from __future__ import annotations

from stepscope.app.debug import Position, Session
from stepscope.app.debug.shown.why_blocks import known_why, place_of, target_of, why_blocks
from stepscope.app.debug.why import Proof
from stepscope.app.present.blocks import AtChange, Fact, Paragraph
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT

TRACE = ROOT / "sample_traces" / "fcfs-preemption-before.trace"


def test_the_cause_stands_first_and_each_link_leads_to_the_row_that_proves_it() -> None:
    session = Session(Trace.open(TRACE))
    session.goto(step=67)
    chain = known_why(session, "req-17")
    assert chain is not None

    first, link, decided_in, root = why_blocks(chain)

    assert first == Paragraph(chain.first_line)
    assert isinstance(link, Fact)
    assert isinstance(root, Fact)
    assert (link.label, root.label) == ("1 → step 67", "root → step 67")
    assert decided_in == Fact("decided in", ("schedule > _decode > _set_aside",))
    assert chain.as_dict()["links"][0]["site"].startswith("engine/schedulers/bucketed.py: ")
    assert isinstance(link.to, AtChange)
    assert session.goto(seq=link.to.seq)
    assert session.position == chain.links[0].position
    assert isinstance(session.position, Position)


def test_whom_the_trace_does_not_have_is_not_answered() -> None:
    assert known_why(Session(Trace.open(TRACE)), "nobody") is None


def test_a_row_without_a_place_in_the_order_leads_nowhere() -> None:
    assert target_of(Proof("steps", 4, 0)) is None
    assert place_of(Proof("steps", 4, 0)) == ""
    assert place_of(Proof("allocations", None, 0, 7)) == "→ #7"
