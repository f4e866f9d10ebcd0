"""Positions in a queue that requests enter at its head or at its end, for all events at once.

Requests that entered at the end are in the order of their events, and all that entered at the head
are before them, the latest first. So both are lines, and the position of a request in its line is
how many of those that entered it before have not left. A request has at most `p` of those before it
from the (p+1)-th latest time on at which one of them left: all of these are running maxima.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepscope.ingest.derive.distinct_numbers import order_of

AT_END = 1 << 40
"""The index of an event that enters at the end, however long the queue is."""
MOST_CELLS = 1 << 31
"""Moments by requests at the head of the queue up to which they are looked at."""
CELLS_AT_ONCE = 1 << 22
NO_EVENT = -1
Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class QueueEvents:
    """The events of one queue in their order; each array has an item for each event.

    `is_entry` is true where a request enters (at `index`, or AT_END) and false where it leaves;
    `request` numbers requests, and `moment` the different times of the events from 0.
    """

    is_entry: Bools
    request: Ints
    index: Ints
    moment: Ints


@dataclass(frozen=True, slots=True)
class Stays:
    """Who was at one position: from moment to moment, and the event by which the request entered.

    Sorted by time. What lasts until the end of the events has the number of moments as its end.
    """

    first: Places
    last: Places
    event: Places


@dataclass(frozen=True, slots=True)
class Positions:
    """How many requests waited at most, and who was at each of the first positions, from 0."""

    longest: int
    stays: Iterator[Stays]


def positions_of(events: QueueEvents, most: int) -> Positions | None:
    """Return the first `most` positions at the end of each moment.

    None where a request entered in the middle: then each place depends on all events before.
    """
    num_events = len(events.request)
    if not num_events:
        return Positions(0, iter(()))
    leaves, waited = _leaves(events)
    length = np.cumsum(events.is_entry.astype(np.int32) - waited, dtype=np.int64)
    entries = np.flatnonzero(events.is_entry)
    index, before = events.index[entries], length[entries] - 1
    is_last = np.append(events.moment[1:] != events.moment[:-1], True)
    at_end = index >= before
    if not (at_end | (index <= 0)).all():
        return None
    longest = int(length[is_last].max(initial=0))
    tail, head = (_Line(events, entries[own], leaves) for own in (at_end, ~at_end))
    num_head = head.lengths()[is_last]
    num_positions = min(most, longest)
    most_head = int(num_head.max(initial=0))
    if most_head * len(num_head) > MOST_CELLS:
        return None
    found = tail.stays(num_positions)
    if most_head:
        lines = [_Column.of(each) for each in head.stays(most_head)]
        columns = [_Column.of(each) for each in found]
        found = _head_first(lines, columns, num_head)
    return Positions(longest, (_joined(each, events.request) for each in found))


def _leaves(events: QueueEvents) -> tuple[Places, Bools]:
    """Of each event the next of its request (else the number of events), and if that waited.

    A request that enters again leaves the place that it had before.
    """
    order = order_of(events.request).astype(np.int32)
    request = events.request[order]
    is_same = request[1:] == request[:-1]
    following = np.full(len(order), len(order), np.int32)
    following[order[:-1][is_same]] = order[1:][is_same]
    waited = np.zeros(len(order), np.bool_)
    waited[order[1:][is_same]] = events.is_entry[order[:-1][is_same]]
    return following, waited


class _Line:
    """Requests that leave a line at any place of it and enter it at its end alone."""

    def __init__(self, events: QueueEvents, entries: Ints, leaves: Places) -> None:
        self._enters, self._leaves = entries.astype(np.int32), leaves[entries]
        self._num_events = len(events.request)
        last = int(events.moment[-1]) + 1
        self._moment = np.append(events.moment, last).astype(np.int32)

    def lengths(self) -> Ints:
        """How many are in the line after each event."""
        change = np.zeros(self._num_events + 1, np.int64)
        change[self._enters] += 1
        np.subtract.at(change, self._leaves, 1)
        return np.cumsum(change[:-1])

    def stays(self, num_positions: int) -> Iterator[Stays]:
        """Who was at each of the first positions of the line."""
        enters, leaves, freed = self._enters, self._leaves, self._leaves
        ahead = np.full(len(leaves), self._num_events, np.int32)
        for _ in range(num_positions):
            latest = np.empty_like(freed)
            latest[:1] = NO_EVENT
            np.maximum.accumulate(freed[:-1], out=latest[1:])
            first = self._moment[np.maximum(enters, latest)]
            last = self._moment[np.minimum(leaves, ahead)]
            own = np.flatnonzero(first < last)
            yield Stays(first[own], last[own], enters[own])
            # Who entered at this position or before it is at none behind it.
            far = np.flatnonzero(latest > enters)
            enters, leaves, ahead = enters[far], leaves[far], latest[far]
            freed = np.minimum(freed[far], ahead)


@dataclass(frozen=True, slots=True)
class _Column:
    """Who was at a position at every moment, as the moments at which that changed."""

    since: Places
    event: Places

    @classmethod
    def of(cls, stays: Stays) -> _Column:
        since = np.stack((stays.first, stays.last), axis=1).ravel()
        event = np.stack((stays.event, np.full_like(stays.event, NO_EVENT)), axis=1).ravel()
        none = np.array([NO_EVENT], np.int32)
        return cls(np.concatenate((none, since)), np.concatenate((none, event)))

    def between(self, first: int, last: int) -> Places:
        """Who was there at each of the moments [first, last)."""
        # Of another type than the array, a number would have all of it converted.
        low = int(np.searchsorted(self.since, np.int32(first), "right")) - 1
        high = int(np.searchsorted(self.since, np.int32(last)))
        since = np.append(self.since[low:high], np.int32(last))
        since[0] = first
        return np.repeat(self.event[low:high], np.diff(since))


def _head_first(head: list[_Column], tail: list[_Column], num_head: Ints) -> Iterator[Stays]:
    """Who was at each position of both lines, the latest of the head before the earliest."""
    num_positions, num_moments = len(tail), len(num_head)
    at_once = max(CELLS_AT_ONCE // (len(head) + num_positions), 1)
    changes: list[list[tuple[Places, Places]]] = [[] for _ in tail]
    latest = np.full(num_positions, NO_EVENT, np.int32)
    for first in range(0, num_moments, at_once):
        last = min(first + at_once, num_moments)
        rows = np.stack([column.between(first, last) for column in (*head, *tail)])
        own, moment = num_head[first:last], np.arange(last - first)
        for position in range(num_positions):
            place = np.where(own > position, own - 1 - position, len(head) + position - own)
            event = rows[place, moment]
            is_new = np.append(event[0] != latest[position], event[1:] != event[:-1])
            latest[position] = event[-1]
            changed = np.flatnonzero(is_new)
            changes[position].append(((changed + first).astype(np.int32), event[changed]))
    for parts in changes:
        since, event = (np.concatenate(each) for each in zip(*parts, strict=True))
        until = np.append(since, np.int32(num_moments))[1:]
        is_there = event != NO_EVENT
        yield Stays(since[is_there], until[is_there], event[is_there])


def _joined(stays: Stays, request: Ints) -> Stays:
    """One stay where a request left and came back to its position within a moment."""
    who = request[stays.event]
    goes_on = (who[1:] == who[:-1]) & (stays.first[1:] == stays.last[:-1])
    if not goes_on.any():
        return stays
    begins, ends = np.append(True, ~goes_on), np.append(~goes_on, True)
    return Stays(stays.first[begins], stays.last[ends], stays.event[begins])
