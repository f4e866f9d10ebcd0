"""What a pair says: where it diverges, what only one has, how it lies, and what swapping does."""

from __future__ import annotations

import pytest

from stepscope.analyzers.diff.compare import diff
from stepscope.app.paired.alignments import Alignment
from stepscope.app.paired.found_in_both import PairedFinding, alone_in
from stepscope.app.paired.leads import led
from stepscope.app.paired.selected import told
from stepscope.app.paired.standing import Standing
from stepscope.app.present.blocks import AtSpan, Fact, Links, RulePage, Runs, Title, Tone
from stepscope.app.present.diff_text import verdict
from stepscope.app.present.where import when
from stepscope.app.timeline.moves import MOVES
from stepscope.app.units import duration
from tests.app.paired.pairs import EVERY_PAIR, PAIRS, pair
from tests.tiers import slow


@slow
def test_the_divergence_is_that_of_diff_in_its_words_and_at_its_step() -> None:
    both = pair("fcfs")
    found = diff(*both.traces)
    assert found.divergence
    assert both.said == next(verdict(found))
    ours, theirs = (side.composition for side in both.sides)
    step = found.divergence.step

    assert both.diverged_ns == (
        int(ours.formed_ns[ours.step == step][0]), int(theirs.formed_ns[theirs.step == step][0])
    )  # fmt: skip
    assert both.diverged_on_a(both.first_alignment) == (both.diverged_ns[0],) * 2


@slow
def test_two_that_are_the_same_have_no_divergence_to_go_to() -> None:
    standing = Standing.first(pair("the same twice"))

    assert not standing.diverged()
    assert "the same in every step" in standing.said


def test_what_only_one_found_says_so_and_the_same_twice_has_nothing_alone() -> None:
    both = pair("fcfs")
    found = both.findings(both.first_alignment)
    assert len(list(alone_in(found, 0))) == len(both.results[0].findings) > 0
    assert all(each.message.startswith("only A: ") for each in found)

    same = pair("the same twice")
    of_both = same.findings(same.first_alignment)
    assert of_both
    assert not [*alone_in(of_both, 0), *alone_in(of_both, 1)]


@slow
def test_a_finding_of_b_stands_on_the_lane_and_at_the_time_of_b() -> None:
    both = pair("fcfs").swapped()
    timeline = both.timeline(both.first_alignment)
    for each in both.findings(both.first_alignment):
        lane = timeline.lane_of(each)
        assert each.own is not None
        assert lane is not None
        assert timeline.joined.whose[lane] == (1, timeline.both[1].lane_of(each.own))
        if each.own.ts_ns is not None:
            assert each.ts_ns == timeline.on_a(1, each.own.ts_ns)


@slow
def test_a_requests_arrival_lies_on_its_arrival() -> None:
    both = pair("vllm")
    timeline = both.timeline(both.first_alignment)
    lane = next(each.id for each in timeline.lanes if each.label.startswith("B 3-"))
    who = both.who(timeline, lane)
    assert who is not None
    assert who[1].startswith("3-")

    found = both.aligned("request", who)

    assert isinstance(found, Alignment)
    assert both.alignment("request", (0, "nobody")).by == "time"
    assert found.map.b_at(int(found.map.a[0])) == int(found.map.b[0])


def test_alignments_come_in_turn_and_what_cannot_be_says_why() -> None:
    standing = Standing.first(pair("fcfs"))
    assert standing.alignment.spelled == "step"

    assert "select a lane of a request" in standing.next_alignment()
    assert standing.alignment.spelled == "time"
    standing.view.lane = standing.timeline.lane_of_request(0, "req-05")
    standing.next_alignment()
    assert standing.alignment.spelled == "step"
    assert not standing.next_alignment()
    assert standing.alignment.who == (0, "req-05")


@pytest.mark.parametrize("name", EVERY_PAIR)
def test_every_move_can_be_made_and_what_is_selected_is_told_of_its_own_trace(name: str) -> None:
    both = pair(name)
    standing = Standing.first(both)
    for _ in range(2):
        for move in MOVES.values():
            move(standing.view)
            blocks = told(standing.pair, standing.view.selection, standing.timeline)
            span = standing.view.span
            if span and not standing.view.mark and not standing.view.selection.finding:
                side = standing.timeline.joined.whose[span.lane][0]
                assert isinstance(blocks[0], Title)
                assert blocks[0].text.startswith("AB"[side])
        standing.exchange()


def test_a_span_is_told_with_its_own_times_and_what_the_other_has_there() -> None:
    standing = Standing.first(pair("fcfs"))
    lane = next(each.id for each in standing.timeline.lanes if each.label == "B req-05")
    standing.view.select(lane, standing.view.timeline.bounds[0] + 2_000_000_000)
    span = standing.view.span
    assert span
    own = standing.timeline.own_span(span)

    blocks = told(standing.pair, standing.view.selection, standing.timeline)

    facts = {each.label: each.values[0] for each in blocks if isinstance(each, Fact)}
    assert own.ref == standing.timeline.both[1].at(own.lane, own.start_ns).ref  # type: ignore[union-attr]  # it is there
    assert facts["starts"] == when(own.start_ns, standing.timeline.both[1], 1)
    assert facts["takes"] == duration(own.end_ns - own.start_ns)
    assert any("in A, at the same place" in str(getattr(each, "text", "")) for each in blocks)


def test_what_leads_somewhere_leads_to_lanes_of_both_or_nowhere() -> None:
    standing = Standing.first(pair("fcfs").swapped())
    assert standing.view.next_finding(1)
    blocks = told(standing.pair, standing.view.selection, standing.timeline)
    targets = [each.to for block in blocks if isinstance(block, Links) for each in block.choices]

    assert targets
    assert all(isinstance(each, RulePage) for each in targets)

    timeline = pair("mix").timeline(pair("mix").first_alignment)
    own = AtSpan(3, 1_000)
    (moved,) = led([Runs((("there", Tone.TEXT),), own)], timeline, 1)
    assert isinstance(moved, Runs)
    assert isinstance(moved.to, AtSpan)
    assert timeline.joined.whose[moved.to.lane] == (1, 3)
    assert timeline.own_time(1, moved.to.since_ns + timeline.bounds[0]) >= 1_000


def test_exchanged_twice_is_as_before() -> None:
    standing = Standing.first(pair("fcfs"))
    standing.diverged()
    before = standing.view.cursor_ns
    standing.exchange()
    assert standing.pair.traces[0].name == PAIRS["fcfs"][1]
    standing.exchange()

    assert standing.pair is pair("fcfs")
    assert standing.view.cursor_ns == before


def test_swapped_findings_are_of_the_other_side() -> None:
    both = pair("fcfs").swapped()
    found = both.findings(both.first_alignment)

    assert all(isinstance(each, PairedFinding) and each.side == 1 for each in found)
    assert all(each.message.startswith("only B: ") for each in found)
