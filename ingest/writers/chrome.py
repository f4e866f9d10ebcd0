"""A trace as Chrome JSON, which Perfetto, chrome://tracing and our own reader open."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import msgspec
import polars as pl
from msgspec import UNSET, Raw, UnsetType

from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.errors import WriteError
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.engine_slices import FIELDS, engine_counters, engine_slices

CHUNK_ROWS = 16 << 10
BUNDLE_EVENTS = 4 << 10
EXACT_NS = (1 << 42) * 1000
SEPARATOR = " / "
UNNAMED = "unnamed"
SHOWN_FIRST = ("engine / steps", "engine / decisions", "requests / ")
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
    bp: str | UnsetType = UNSET
    s: str | UnsetType = UNSET
    args: Raw | dict[str, Any] | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the file shows, on the trace's clock until it is moved."""

    slices: pl.DataFrame
    counters: pl.DataFrame
    flows: pl.DataFrame

    @classmethod
    def of(cls, trace: Trace) -> _Shown:
        return cls(_slices(trace), _counters(trace), _flows(trace))

    def zero_ns(self) -> int:
        """The time on the trace's clock that the file calls zero.

        It is the clock's own zero where viewers can read every time. They read microseconds as
        doubles, which hold every nanosecond below `EXACT_NS`; later ones are rounded, and then
        Perfetto drops slices that seem to overlap. It drops what comes before zero as well.
        """
        times = pl.concat([frame["ts_ns"] for frame in (self.slices, self.counters, self.flows)])
        if times.is_empty() or times.is_between(0, EXACT_NS - 1).all():
            return 0
        return int(times.sort()[0])

    def moved(self, zero_ns: int) -> _Shown:
        later = pl.col("ts_ns") - zero_ns
        frames = (self.slices, self.counters, self.flows)
        return _Shown(*(frame.with_columns(later) for frame in frames)) if zero_ns else self


class _Places:
    """Numbers for processes and threads, in the order in which they are shown."""

    def __init__(self, tracks: Iterable[str], processes: Iterable[str]) -> None:
        self._tids = {track: tid for tid, track in enumerate(sorted(tracks, key=_order), 1)}
        of_tracks = [track.partition(SEPARATOR)[0] for track in self._tids]
        every = dict.fromkeys([*of_tracks, *sorted(processes, key=_order)])
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


def write_chrome(trace: Trace, out: str | Path) -> None:
    """Write a trace to `out`, gzipped when it ends in `.gz`; the same trace gives the same bytes.

    Spans, flows and counters are written as they are; steps, requests, core groups, decisions
    and collectives get tracks of their own. An asynchronous span becomes a slice, since its
    track is its own. Times that viewers would round or drop, as those of a wall clock, are
    counted from the first one, and `baseTimeNanoseconds` says when that was; times among the
    arguments stay on the trace's clock. Raises `WriteError` when `out` cannot be written.
    """
    path = Path(out)
    shown = _Shown.of(trace)
    zero_ns = shown.zero_ns()
    try:
        with _draft(path) as file:
            file.write(_head(trace, zero_ns))
            separator = b"\n"
            for texts in _bundles(map(_encode, _events(shown.moved(zero_ns)))):
                file.write(separator + b",\n".join(texts))
                separator = b",\n"
            file.write(b"\n]}\n")
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror}", where=str(path)) from error


@contextmanager
def _draft(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file that takes its name once it is whole."""
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with draft.open("wb") as file:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    yield packed
            else:
                yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


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


def _events(shown: _Shown) -> Iterator[_Event]:
    tracks = {*shown.slices["track"].unique(), *shown.flows["track"].drop_nulls().unique()}
    places = _Places(tracks, shown.counters["track"].drop_nulls().unique())
    yield from places.names()
    yield from _slice_events(shown.slices, places)
    yield from _counter_events(shown.counters, places)
    yield from _flow_events(shown.flows, places)


def _slices(trace: Trace) -> pl.DataFrame:
    """All slices and instants, in lanes."""
    spans = pl.concat([*engine_slices(trace), trace.spans.select(FIELDS).collect()])
    form = pl.when(pl.col("dur_ns").is_null()).then(pl.lit("instant")).otherwise(pl.lit("slice"))
    complete = spans.drop_nulls("ts_ns").with_columns(
        _track(trace).fill_null("global"),
        pl.col("name").fill_null(""),
        pl.col("form").fill_null(form),
    )
    return with_lanes(complete)


def _counters(trace: Trace) -> pl.DataFrame:
    columns = ("rank", "ts_ns", "track", "name", "value")
    sampled = pl.concat([engine_counters(trace), trace.counters.select(columns).collect()])
    finite = sampled.drop_nulls("ts_ns").filter(pl.col("value").is_finite())
    return finite.with_columns(_track(trace))


def _flows(trace: Trace) -> pl.DataFrame:
    """The ends of arrows, which viewers join when name, category and id, a number, are the same.

    Ids are kept where they are numbers of one rank: two ranks give the same id to two arrows.
    """
    ends = trace.flows.filter(pl.col("end").is_in(list(PH_OF_END))).drop_nulls(["ts_ns", "flow"])
    of_flow = [
        pl.col(name).fill_null(pl.col(name).drop_nulls().first().over("rank", "flow"))
        for name in ("name", "category")
    ]
    named = ends.with_columns(of_flow).with_columns(_track(trace)).collect()
    numeric = named["flow"].str.contains(NUMERIC_ID).all()
    return named if numeric and not _several(trace) else named.with_columns(_NUMBERED)


def _track(trace: Trace) -> pl.Expr:
    """The track, which names its rank where there are several."""
    named = pl.format("rank {} {}", "rank", "track").alias("track")
    return named if _several(trace) else pl.col("track")


def _several(trace: Trace) -> bool:
    return len(trace.manifest.ranks) > 1


def _slice_events(slices: pl.DataFrame, places: _Places) -> Iterator[_Event]:
    columns = ("track", "name", "category", "form", "ts_ns", "dur_ns", "args")
    for track, name, category, form, ts_ns, dur_ns, args in _rows(slices, columns):
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


def _counter_events(counters: pl.DataFrame, places: _Places) -> Iterator[_Event]:
    for track, name, ts_ns, value in _rows(counters, ("track", "name", "ts_ns", "value")):
        pid = UNSET if track is None else places.pid(track)
        yield _Event("C", name, ts=_microseconds(ts_ns), pid=pid, args={"value": value})


def _flow_events(flows: pl.DataFrame, places: _Places) -> Iterator[_Event]:
    columns = ("track", "name", "category", "ts_ns", "flow", "end")
    for track, name, category, ts_ns, flow, end in _rows(flows, columns):
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


def _rows(frame: pl.DataFrame, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    for chunk in frame.select(columns).iter_slices(CHUNK_ROWS):
        yield from chunk.iter_rows()


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


def _order(name: str) -> tuple[int, str]:
    """Steps, then requests, then the rest; "core 10" after "core 9"."""
    place = next((n for n, text in enumerate(SHOWN_FIRST) if text in name), len(SHOWN_FIRST))
    return place, re.sub(r"\d+", lambda digits: digits.group().zfill(20), name)
