"""The address and the view that it spells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.web.panes import PANES
from stepscope.app.web.view import LATEST, View
from stepscope.ingest.schema import BY_NAME

TIMES = st.integers(0, LATEST)
RANGES = st.tuples(TIMES, TIMES).map(sorted).filter(lambda ends: ends[0] < ends[1]).map(tuple)
# A lone surrogate cannot stand in an address, and an empty text is the same as none.
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
NAMES = st.lists(TEXTS, max_size=4, unique=True).map(tuple)
VIEWS = st.builds(
    View,
    t=st.none() | RANGES,
    sel=st.none() | st.tuples(st.integers(0, 10_000), TIMES),
    finding=st.none() | TEXTS,
    step=st.none() | st.integers(0, LATEST),
    seq=st.none() | st.integers(0, LATEST),
    ts=st.none() | TIMES,
    stop=st.none() | TEXTS,
    value=st.none() | TEXTS,
    mark=st.none() | RANGES,
    pin=st.lists(st.integers(0, 10_000), max_size=5, unique=True).map(tuple),
    hide=NAMES,
    collapse=NAMES,
    tab=st.sampled_from([tab.name for tab in PANES]),
    table=st.none() | st.sampled_from(sorted(BY_NAME)),
    sort=st.none() | TEXTS,
    page=st.integers(1, 10**6),
    sql=st.none() | TEXTS,
    explain=st.none() | TEXTS,
)


@given(VIEWS)
def test_every_view_reads_back_as_it_was_spelled(view: View) -> None:
    assert View.parse(view.spell()) == view


@given(VIEWS)
def test_a_question_mark_in_front_changes_nothing(view: View) -> None:
    assert View.parse(f"?{view.spell()}") == view


@given(st.text(max_size=300))
def test_any_text_reads_as_some_view(text: str) -> None:
    view = View.parse(text)

    assert View.parse(view.spell()) == view


def test_a_view_without_choices_has_an_empty_address() -> None:
    assert View().spell() == ""


def test_what_is_misspelt_is_left_out_and_the_rest_still_holds() -> None:
    view = View.parse(
        "?t=9..3&sel=x@1&mark=1..1&pin=4,-1,x,5&tab=nothing&table=passwords&page=0&step=٣&hide=decode"
    )

    assert view == View(pin=(4, 5), hide=("decode",))


def test_absurd_numbers_are_left_out() -> None:
    assert View.parse(f"?t=0..{10**40}&step={LATEST + 1}&sel=1@{'9' * 5000}") == View()


def test_a_link_says_only_what_it_changes() -> None:
    assert View(tab="step", step=4).link(finding="COR001.2", t=None) == "?finding=COR001.2&t="
