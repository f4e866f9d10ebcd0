"""Look-ups do not pile up: one at a time, then the latest query."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.tui.widgets.latest import Latest


def test_wishes_made_meanwhile_are_dropped_but_for_the_last() -> None:
    started: list[int] = []
    latest: Latest[int] = Latest(started.append)
    for query in (1, 2, 3, 4):
        latest.ask(query)
    assert started == [1]
    assert latest.is_wanted() is False, "4 is wanted by now"
    assert started == [1, 4]
    assert latest.is_wanted() is True
    latest.ask(5)
    assert started == [1, 4, 5]


@given(st.lists(st.booleans(), max_size=40))
def test_the_last_wish_is_always_looked_up_and_never_two_at_once(events: list[bool]) -> None:
    started: list[int] = []
    latest: Latest[int] = Latest(started.append)
    running, last = False, None
    for number, is_wish in enumerate(events):
        if is_wish:
            latest.ask(number)
            running, last = True, number
        elif running:
            running = not latest.is_wanted()
    while running:
        running = not latest.is_wanted()
    assert (started[-1] if started else None) == last
    assert started == sorted(set(started))
