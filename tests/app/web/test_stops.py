"""What the page looks for: hits in the address, between steps too, and what is wrong with words."""

from __future__ import annotations

import re
from functools import cache
from urllib.parse import quote

from stepscope.app.present.blocks import AtChange, Fact
from stepscope.app.web import stops
from stepscope.app.web.components import components
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.step import step_pane
from stepscope.app.web.resolve import resolve
from stepscope.app.web.view import View
from tests.app.debug.small_traces import hits_on_two_ranks, waiting_on_rank_one
from tests.app.web.small_traces import HOSTILE, US, conflict_trace, loaded_of
from tests.app.web.test_panes import hrefs, said
from tests.traces import trace_of


@cache
def small() -> LoadedTrace:
    return loaded_of(conflict_trace())


def hit(address: str, by: str = "next-hit") -> View:
    """The view at the hit after or before that of an address."""
    return resolve(small(), f"{address}&go={by}").view


def told(view: View) -> str:
    return said(step_pane(small(), view))


def looking(words: str) -> str:
    return f"?tab=step&break={quote(words)}"


def test_what_is_looked_for_has_the_name_of_the_command_in_an_address() -> None:
    assert View().link(stop="block 5") == "?break=block%205"
    assert View.parse("?break=block%205") == View(stop="block 5")
    assert View.parse("?stop=block%205") == View()


def test_hits_at_steps_are_gone_through_forward_and_back_and_stop_at_the_ends() -> None:
    first = hit(looking("steps: step in (3, 5)"))
    last = hit(first.spell())

    assert (first.step, first.seq, first.ts) == (3, None, None)
    assert (last.step, hit(last.spell()).step) == (5, 5)
    assert hit(last.spell(), "previous-hit").step == 3
    assert "hit 1 of 2" in told(first)
    assert "hit 2 of 2" in told(last)


def test_a_hit_between_steps_is_in_the_address_by_its_change() -> None:
    view = hit(looking("break admitted 2"))

    assert (view.step, view.ts) == (2, None)
    assert view.seq is not None
    assert view.point
    assert view.point[1] == 210 * US
    assert resolve(small(), view.spell()).view == view
    assert "step 2, 3 of 6" in told(view)
    assert f"behind change #{view.seq:,} at 0.210 ms" in told(view)
    assert "hit 1 of 1" in told(view)


def test_a_hit_that_is_no_change_is_in_the_address_by_its_time() -> None:
    view = hit(looking("counters: value = 1 and ts_ns > 100000"))

    assert resolve(small(), view.spell()).view == view
    assert hit(view.spell()) == view


def test_a_step_or_a_span_that_one_goes_to_is_no_longer_between_steps() -> None:
    between = hit(looking("admitted 2"))

    next_step = resolve(small(), f"{between.spell()}&go=next-step").view
    marking = resolve(small(), f"{between.spell()}&go=mark").view

    assert (next_step.step, next_step.seq) == (3, None)
    assert (marking.step, marking.seq) == (2, between.seq)


def test_a_link_to_a_row_leads_behind_its_change_and_names_the_step_there() -> None:
    (link,) = hrefs(components([Fact("1", ("it waits",), to=AtChange(4, 99))]))

    view = resolve(small(), link).view

    assert (view.tab, view.seq) == ("step", 4)
    assert view.step == 0


def test_places_on_the_minimap_are_where_the_hits_are() -> None:
    found = resolve(small(), looking("steps: step = 3")).as_props(small())["hits"]

    assert found == {"told": "1 hit", "places": (50.0,)}
    assert resolve(small(), "").as_props(small())["hits"] is None


WRONG = {
    "steps: num_wating > 1": "num_waiting",
    "steps: num_waiting >": "does not run",
    "steps: step in (select 1)": "a condition holds no query",
    "steps: read_csv('/etc/passwd') > 1": "not allowed",
    "steps: lpad(kind, 10000000000) = 'x'": "lpad is not allowed",
    "steps: generate_series(1, 10000000000) is null": "generate_series is not allowed",
    'steps: "Range" /* of */ (1, 10000000000) is null': "Range is not allowed",
    "steps: array_to_string(array_agg(kind) over (), 'x') = 'x'": "array_agg is not allowed",
    "nonsense": "no such stop",
    "finding XYZ999": "no rule XYZ999",
    "block many": "not a number",
    "accesses: epoch > 1": "not recorded",
    HOSTILE: "no such stop",
    "x" * 501: "500 at most",
    "steps: " + "(" * 400: "the limit is 20",
}
"""Conditions, and what is said of each."""


def test_what_is_wrong_with_a_condition_is_one_line_beside_it() -> None:
    views = {words: hit(looking(words)) for words in WRONG}
    failures = {
        words: looked.failed for words in WRONG if (looked := stops.looked(small(), views[words]))
    }
    marks = {words: resolve(small(), looking(words)).as_props(small())["hits"] for words in WRONG}

    assert {words: line for words, line in failures.items() if "\n" in line} == {}
    assert [words for words, says in WRONG.items() if says not in failures[words]] == []
    assert [words for words, says in WRONG.items() if says not in told(views[words])] == []
    assert {words: view.stop for words, view in views.items()} == {words: words for words in WRONG}
    nothing = {"told": "", "places": ()}
    assert {words: hits for words, hits in marks.items() if hits != nothing} == {}


def test_a_condition_that_nothing_meets_is_no_failure() -> None:
    view = hit(looking("preempt"))

    assert "no row of this trace meets it" in told(view)
    assert not hrefs(step_pane(small(), view)) & {"?go=next-hit", "?go=previous-hit"}


def test_hits_of_the_last_few_conditions_are_remembered() -> None:
    loaded = loaded_of(conflict_trace())

    for step in range(10):
        resolve(loaded, looking(f"steps: step = {step}")).as_props(loaded)

    assert (
        list(loaded.sought) == [(0, f"steps: step = {step}") for step in range(10)][-stops.MOST :]
    )


def test_a_place_that_the_trace_does_not_have_is_its_nearest() -> None:
    loaded = small()

    assert resolve(loaded, "?seq=999999").view.step == 5
    assert resolve(loaded, "?ts=999999999").view.step == 5
    assert resolve(loaded_of(trace_of()), "?seq=7&ts=9&break=preempt&go=next-hit").view.seq is None


@cache
def of_two() -> LoadedTrace:
    return loaded_of(hits_on_two_ranks())


def of_both(view: View) -> str:
    return said(step_pane(of_two(), view))


def test_a_hit_on_another_rank_is_gone_to_and_is_in_the_address() -> None:
    views = [View(tab="step", stop="steps: ts_ns >= 3000000")]
    for _ in range(4):
        views.append(resolve(of_two(), f"{views[-1].spell()}&go=next-hit").view)

    assert [view.rank for view in views[1:]] == [None, 1, 1, None]
    assert "step 3 of 4 of rank 0" in of_both(views[1])
    assert "step 1 of 2 of rank 1" in of_both(views[2])
    assert "hit 2 of 4 on 2 ranks" in of_both(views[2])
    assert "step 4 of 4 of rank 0" in of_both(views[4])
    assert resolve(of_two(), views[2].spell()).view == views[2]
    assert resolve(of_two(), f"{views[2].spell()}&go=previous-hit").view == views[1]


def test_another_rank_is_walked_by_its_own_steps_and_follows_by_time() -> None:
    last = resolve(of_two(), "?tab=step&rank=1&ts=3000000").view

    formed = resolve(of_two(), f"{last.spell()}&go=previous-step").view
    before = resolve(of_two(), f"{formed.spell()}&go=previous-step").view

    assert "step 2 of 2 of rank 1" in of_both(last)
    assert "step 1 of 2 of rank 1" in of_both(before)
    assert resolve(of_two(), f"{before.spell()}&go=next-step").view.rank == 1
    assert "before the first step of rank 1" in of_both(resolve(of_two(), "?rank=1&step=1").view)


def test_ranks_lead_to_each_other_at_the_same_moment() -> None:
    here = resolve(of_two(), "?tab=step&rank=1&ts=2200000").view

    assert any(
        "rank=&" in href and "ts=2200000" in href for href in hrefs(step_pane(of_two(), here))
    )
    ways = hrefs(step_pane(small(), View(tab="step")))
    assert not any("rank=" in href for href in ways if "request=" not in href)


def test_a_rank_that_the_trace_does_not_have_is_left_out() -> None:
    for rank in ("0", "7", "x", "99999999999999999999"):
        assert resolve(of_two(), f"?rank={rank}&step=2").view.rank is None


def test_a_block_is_looked_for_in_the_rank_that_is_stood_at() -> None:
    claim = {"step": 1, "op": "claim", "resource": "kv-block", "id": 5, "owner": "a"}
    steps = [{"rank": rank, "step": 1, "ts_ns": 50, "kind": "decode"} for rank in (0, 1)]
    rows = [{**claim, "rank": rank, "ts_ns": 100 + at} for at, rank in enumerate((0, 1, 1))]
    loaded = loaded_of(trace_of(steps=steps, allocations=rows))

    own, other = (resolve(loaded, f"?break=block+5{rank}") for rank in ("", "&rank=1"))

    assert "1 hit" in said(step_pane(loaded, own.view))
    assert "2 hits" in said(step_pane(loaded, other.view))


def test_a_mark_on_the_minimap_leads_to_the_first_hit_there() -> None:
    view = View(tab="step", stop="steps: rank = 1")
    shown = resolve(of_two(), view.spell()).as_props(of_two())["hits"]

    first, last = (
        resolve(of_two(), f"{view.spell()}&go=hit-{place}").view for place in shown["places"]
    )

    assert "step 1 of 2 of rank 1" in of_both(first)
    assert "step 2 of 2 of rank 1" in of_both(last)


def test_a_mark_that_is_not_there_leads_nowhere() -> None:
    view = View(tab="step", step=2, stop="steps: rank = 1")
    moves = ("hit-", "hit-99.99", "hit-1e9", "hit-nan", "hit--1", "hit-\uff11")

    steps = {move: resolve(of_two(), f"{view.spell()}&go={move}").view.step for move in moves}

    assert steps == dict.fromkeys(moves, 2)


def test_why_of_whom_another_rank_has_leads_to_the_row_of_that_rank() -> None:
    loaded = loaded_of(waiting_on_rank_one())
    view = resolve(loaded, "?tab=step&step=2&who=late").view

    shown = str(step_pane(loaded, view))

    assert "late of rank 1, as rank 0 has none such" in shown
    link = re.search(r"\?tab=step&seq=\d+&rank=1", shown)
    assert link
    there = resolve(loaded, link[0]).view
    assert there.rank == 1
