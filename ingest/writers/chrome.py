"""A trace as Chrome JSON, which Perfetto, chrome://tracing and our own reader open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from msgspec import UNSET, Raw, UnsetType

from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.shown import SEPARATOR, Shown, draft, in_order, order, rows

BUNDLE_EVENTS = 4 << 10
EXACT_NS = (1 << 42) * 1000
UNNAMED = "unnamed"
NUMERIC_ID = r"^(0x)?[0-9a-fA-F]{1,16}$"
_NUMBERED = pl.struct("rank", "flow").rank("dense").cast(pl.String).alias("flow")
PH_OF_END = {"start": "s", "step": "t", "finish": "f"}
PH_OF_FORM = {"instant": "i", "unfinished": "B"}
_encode = msgspec.json.Encoder().encode
_arguments = msgspec.json.Decoder(dict[str, Raw])


class _Event(msgspec.Struct, omit_defaults=True, gc=False):
    """One trace event; what is not set is not written."""

    ph: str
    name: str | UnsetType = UNSET
    cat: str | UnsetType = UNSET
    ts: Raw | UnsetType = UNSET
    dur: Raw | UnsetType = UNSET
    pid: int | UnsetType = UNSET
    tid: int | UnsetType = UNSET
    id: str | UnsetType = UNSET
    id2: dict[str, Any] | UnsetType = UNSET
    bp: str | UnsetType = UNSET
    s: str | UnsetType = UNSET
    args: Raw | dict[str, Any] | UnsetType = UNSET


class _Places:
    """Numbers for processes and threads, in the order in which they are shown."""

    def __init__(self, tracks: Iterable[str], processes: Iterable[str]) -> None:
        self._tids = {track: tid for tid, track in enumerate(sorted(tracks, key=order), 1)}
        of_tracks = [track.partition(SEPARATOR)[0] for track in self._tids]
        every = dict.fromkeys([*of_tracks, *sorted(processes, key=order)])
        self._pids = {process: pid for pid, process in enumerate(every, 1)}

    def pid(self, process: str) -> int:
        return self._pids[process]

    def of(self, track: str) -> tuple[int, int]:
        """The pid and tid of a track."""
        return self._pids[track.partition(SEPARATOR)[0]], self._tids[track]

    def names(self) -> Iterator[_Event]:
        """The events that name and sort them; a track that is a whole process is named twice."""
        for process, pid in self._pids.items():
            yield _Event("M", "process_name", pid=pid, args={"name": process or UNNAMED})
            yield _Event("M", "process_sort_index", pid=pid, args={"sort_index": pid})
        for track, tid in self._tids.items():
            process, _, thread = track.partition(SEPARATOR)
            pid = self._pids[process]
            name = thread or process or UNNAMED
            yield _Event("M", "thread_name", pid=pid, tid=tid, args={"name": name})
            yield _Event("M", "thread_sort_index", pid=pid, tid=tid, args={"sort_index": tid})


class ChromeWriter:
    """Chrome JSON, which chrome://tracing and many other viewers open."""

    endings = (".json", ".json.gz")

    def write(self, trace: Trace, out: Path) -> None:
        """Write the trace; see `write_chrome`."""
        write_chrome(trace, out)


def write_chrome(trace: Trace, out: str | Path) -> None:
    """Write a trace to `out`, gzipped when it ends in `.gz`; the same trace gives the same bytes.

    Spans, flows and counters are written as they are; steps, requests, core groups, decisions
    and collectives get tracks of their own. Times that viewers would round or drop, as those of
    a wall clock, are counted from the first one, and `baseTimeNanoseconds` says when that was;
    times among the arguments stay on the trace's clock. Ids of arrows that are not numbers are
    lost, and so are samples that are not finite numbers. Raises `WriteError`.
    """
    shown = Shown.of(trace, _track(trace))
    shown = replace(
        shown,
        counters=shown.counters.filter(pl.col("value").is_finite()),
        flows=_numbered(shown.flows, trace),
    )
    zero_ns = _zero_ns(shown.times())
    with draft(Path(out)) as file:
        file.write(_head(trace, zero_ns))
        separator = b"\n"
        for texts in _bundles(map(_encode, _events(shown.moved(zero_ns)))):
            file.write(separator + b",\n".join(texts))
            separator = b",\n"
        file.write(b"\n]}\n")


def _bundles(texts: Iterator[bytes]) -> Iterator[list[bytes]]:
    while bundle := list(islice(texts, BUNDLE_EVENTS)):
        yield bundle


def _head(trace: Trace, zero_ns: int) -> bytes:
    manifest = trace.manifest
    head: dict[str, Any] = {
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": manifest.clock.epoch_ns + zero_ns,
        "stepscope": {
            "producer": manifest.producer,
            "producer_version": manifest.producer_version,
            "clock": manifest.clock.kind,
        },
    }
    if len(manifest.ranks) == 1:
        head["distributedInfo"] = {"rank": manifest.ranks[0]}
    return _encode(head)[:-1] + b',\n"traceEvents":['


def _events(shown: Shown) -> Iterator[_Event]:
    tracks = {*shown.slices["track"].unique(), *shown.flows["track"].drop_nulls().unique()}
    places = _Places(tracks, shown.counters["track"].drop_nulls().unique())
    yield from places.names()
    hops = pl.col("form") == "async"
    yield from _slice_events(shown.slices.filter(~hops), places)
    yield from _async_events(shown.slices.filter(hops), places)
    yield from _counter_events(shown.counters, places)
    yield from _flow_events(shown.flows, places)


def _track(trace: Trace) -> pl.Expr:
    """The track, which names its rank where there are several."""
    named = pl.format("rank {} {}", "rank", "track").alias("track")
    return named if _several(trace) else pl.col("track")


def _several(trace: Trace) -> bool:
    return len(trace.manifest.ranks) > 1


def _zero_ns(times: pl.Series) -> int:
    """The time on the trace's clock that the file calls zero.

    It is the clock's own zero where viewers can read every time. They read microseconds as
    doubles, which hold every nanosecond below `EXACT_NS`; later ones are rounded, and then
    Perfetto drops slices that seem to overlap. It drops what comes before zero as well.
    """
    if times.is_empty() or times.is_between(0, EXACT_NS - 1).all():
        return 0
    return int(times.sort()[0])


def _numbered(flows: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Arrows with ids that viewers can join, which are numbers.

    Ids are kept where they are numbers of one rank: two ranks give the same id to two arrows.
    """
    numeric = flows["flow"].str.contains(NUMERIC_ID).all()
    return flows if numeric and not _several(trace) else flows.with_columns(_NUMBERED)


def _slice_events(slices: pl.DataFrame, places: _Places) -> Iterator[_Event]:
    columns = ("track", "name", "category", "form", "ts_ns", "dur_ns", "args")
    for track, name, category, form, ts_ns, dur_ns, args in rows(slices, columns):
        pid, tid = places.of(track)
        yield _Event(
            PH_OF_FORM.get(form, "X"),
            name,
            UNSET if category is None else category,
            _microseconds(ts_ns),
            UNSET if dur_ns is None else _microseconds(dur_ns),
            pid,
            tid,
            s="t" if form == "instant" else UNSET,
            args=_args(args),
        )


def _async_events(slices: pl.DataFrame, places: _Places) -> Iterator[_Event]:
    """Begins and ends of spans that may hop between threads; `id2` says that these don't."""
    columns = ("half", "track", "name", "category", "ts_ns", "args")
    for half, track, name, category, ts_ns, args in rows(in_order(slices), columns):
        pid, tid = places.of(track)
        yield _Event(
            "e" if half == "end" else "b",
            name,
            UNSET if category is None else category,
            _microseconds(ts_ns),
            pid=pid,
            tid=tid,
            id2={"local": str(tid), "thread": True},
            args=UNSET if half == "end" else _args(args),
        )


def _counter_events(counters: pl.DataFrame, places: _Places) -> Iterator[_Event]:
    """Samples; viewers show the key of a number beside the counter's name, and so its unit."""
    columns = ("track", "name", "unit", "ts_ns", "value")
    for track, name, unit, ts_ns, value in rows(counters, columns):
        pid = UNSET if track is None else places.pid(track)
        key = "value" if unit is None else f"value [{unit}]"
        yield _Event("C", name, ts=_microseconds(ts_ns), pid=pid, args={key: value})


def _flow_events(flows: pl.DataFrame, places: _Places) -> Iterator[_Event]:
    columns = ("track", "name", "category", "ts_ns", "flow", "end")
    for track, name, category, ts_ns, flow, end in rows(flows, columns):
        pid, tid = (UNSET, UNSET) if track is None else places.of(track)
        yield _Event(
            PH_OF_END[end],
            UNSET if name is None else name,
            UNSET if category is None else category,
            _microseconds(ts_ns),
            pid=pid,
            tid=tid,
            id=flow,
            bp="e" if end == "finish" else UNSET,
        )


def _microseconds(ns: int) -> Raw:
    sign = b"-" if ns < 0 else b""
    return Raw(b"%s%d.%03d" % (sign, abs(ns) // 1000, abs(ns) % 1000))


def _args(text: str | None) -> Raw | dict[str, Any] | UnsetType:
    """Arguments as they were recorded; as text when that is not a JSON object."""
    if text is None:
        return UNSET
    try:
        _arguments.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {"args": text}
    return Raw(text.encode())
