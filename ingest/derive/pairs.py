"""Slices from separate begin and end events, matched like brackets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def pair(
    events: Iterable[tuple[int, str, str | None, bool]],
) -> tuple[dict[int, int], list[int]]:
    """Match each end to the latest open begin of its key, and of its name where it has one.

    `events` are (event id, key, name, is_begin) in order of time. Begins passed over by an end
    that names an outer one stay open. Gives the end of each begin that has one, and the ends
    that have no begin.
    """
    open_by_key: dict[str, list[tuple[int, str | None]]] = {}
    num_open: Counter[tuple[str, str | None]] = Counter()
    ends: dict[int, int] = {}
    unmatched: list[int] = []
    for event, key, name, is_begin in events:
        opened = open_by_key.setdefault(key, [])
        if is_begin:
            opened.append((event, name))
            num_open[key, name] += 1
        elif not opened or (name is not None and not num_open[key, name]):
            unmatched.append(event)
        else:
            begin, begun = opened.pop()
            while name is not None and begun != name:
                num_open[key, begun] -= 1
                begin, begun = opened.pop()
            num_open[key, begun] -= 1
            ends[begin] = event
    return ends, unmatched
