"""Ends of flows that slices carry themselves: what Chrome calls flows of version 2.

A slice with a `bind_id` begins the flow of that number (`flow_out`), ends it (`flow_in`), or passes
it on (both). Flows of version 1 are events of their own. The format: as in `kineto`, "Flow Events".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Raw

from stepscope.ingest.readers.chrome.event import Event

UNDIRECTED = "bind_id without flow_in or flow_out"
BOUND_ENDS = {
    "bind_id with flow_out": "start",
    "bind_id with flow_in and flow_out": "step",
    "bind_id with flow_in": "finish",
}
"""What takes the place of `ph` in an end of a flow that a slice carries."""
_PHS = {
    (False, False): UNDIRECTED,
    (False, True): "bind_id with flow_out",
    (True, True): "bind_id with flow_in and flow_out",
    (True, False): "bind_id with flow_in",
}
_NOTHING = (b"", b"null", b'""')
_NO = (*_NOTHING, b"false", b"0")


def with_flows(events: Sequence[Event]) -> Sequence[Event]:
    """The same events, and behind each that carries an end of a flow that end as one of its own."""
    return events if not any(map(_is_bound, events)) else list(_each(events))


def _each(events: Sequence[Event]) -> Iterator[Event]:
    for event in events:
        yield event
        if _is_bound(event):
            ph = _PHS[_is_so(event.flow_in), _is_so(event.flow_out)]
            yield Event(
                ph, event.name, event.cat, ts=event.ts, pid=event.pid, tid=event.tid,
                id=event.bind_id,
            )  # fmt: skip


def _is_bound(event: Event) -> bool:
    # What is an end of a flow itself has its number in `id`.
    return len(event.bind_id) > 0 and bytes(event.bind_id) not in _NOTHING and event.ph not in "stf"


def _is_so(written: Raw) -> bool:
    return bytes(written) not in _NO
