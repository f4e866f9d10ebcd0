"""Reader of Chrome JSON: torch.profiler (kineto) and whatever else writes trace events.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from stepscope.ingest.derive.collectives.inferred import infer_collectives
from stepscope.ingest.derive.npu import NPU_KERNELS
from stepscope.ingest.derive.steps import UNREAD, about_unread, unread_tags
from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame, conformed
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import CLOCKS, ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.chrome.collect import Collected, collected, together
from stepscope.ingest.readers.chrome.core_lanes import SWIMLANE, CoreTables, core_tables
from stepscope.ingest.readers.chrome.event import is_value
from stepscope.ingest.readers.chrome.merged import by_rank, numbered, own_texts
from stepscope.ingest.readers.chrome.split import EventStream
from stepscope.ingest.readers.chrome.tables import ChromeTables, chrome_tables
from stepscope.ingest.readers.chrome.times import LIMIT_NS
from stepscope.ingest.readers.encodings.inflate import Contents, Inflater, contents
from stepscope.ingest.readers.profile_tables import steps_by
from stepscope.ingest.readers.profiles import groups_of, num_inferred, rank_in_name
from stepscope.ingest.readers.rank_joining import RankFile, joined
from stepscope.ingest.readers.seam import HEAD_BYTES, OneFile
from stepscope.ingest.storage.spool import Spool, Spooled

_KNOWN_FIELDS = re.compile(
    rb'"(?:traceEvents|schemaVersion|deviceProperties|distributedInfo|displayTimeUnit'
    rb'|baseTimeNanoseconds)"'
)
_PH = re.compile(rb'"ph"\s*:')
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
SNIFF_BYTES = 64 << 20
"""How far into a file events are searched for, to tell what it is."""
_OVERLAP_BYTES = 256
_KEPT_CHARS = 4096
TIED = "launches of kernels from arrows"
CORE_TABLES = ("tasks", "core_spans", "task_edges")
Metadata = dict[str, Any]
Read = tuple[dict[str, Frame], Manifest]


@dataclass(frozen=True, slots=True)
class _Aside:
    """What became of a file beside its events: what was no event, and what is to be said of it."""

    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


class ChromeReader(OneFile):
    """Reads trace events, whole or damaged, and counts every one that it skips or repairs."""

    name = "torch.profiler or Chrome JSON (.json, .json.gz, .json.zst)"
    one_per_rank = True

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell an object with traceEvents, or an array of events.

        Much may stand before them: what is one value, and not one a line, is searched for them.
        """
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start[:1] not in (b"{", b"["):
            return False
        is_object = start.startswith(b"{")
        if (_KNOWN_FIELDS if is_object else _PH).search(start):
            return True
        return len(head) >= HEAD_BYTES and _is_further(_EVENTS if is_object else _PH, start, path)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans, flows and counters, and infer steps and collectives; raises `TraceError`.

        Ranks that were merged into the file are joined as those of a folder are.
        """
        reading = progress and partial(progress, "reading")
        with contents(path, reading, limits) as held:
            stream = EventStream(held, str(path), partial(collected, limits=limits), limits)
            events = together(stream, limits)
        cut_off = stream.cut_off or held.damage is not None
        if not events.num_events and cut_off:
            if stream.beyond:
                raise LimitExceeded(stream.beyond, where=str(path))
            ended = f"{held.damage or 'cut off'} after {stream.buffers.num_bytes} bytes"
            what = f"{ended}, before the first whole event"
            raise TruncatedTrace(what, where=str(path), todo="record or copy it again")
        notes = (*stream.notes, *_damage(stream, held), *_left_out(stream.metadata))
        aside = _Aside(stream.reader.skipped, stream.reader.repaired, notes)
        parts = by_rank(events)
        if len(parts) == 1:
            rank = _rank(stream.metadata, path)
            return _of_rank(events, rank, stream.metadata, aside, closed=not cut_off)
        return _of_ranks(parts, stream.metadata, aside, closed=not cut_off)


def _of_ranks(
    parts: dict[str, Collected], metadata: Metadata, aside: _Aside, *, closed: bool
) -> Read:
    """Tables and manifest of ranks that were merged; what is said beside events is said once."""
    said = {**metadata, "merged_ranks": list(parts)}
    ranks = [
        RankFile(label, conformed(tables), manifest)
        for at, (label, number) in enumerate(numbered([*parts]).items())
        for tables, manifest in [
            _of_rank(parts[label], number, {**said}, _Aside() if at else aside, closed=closed)
        ]
    ]
    return joined(ranks, {}, [])


def _of_rank(
    events: Collected, rank: int, metadata: Metadata, aside: _Aside, *, closed: bool
) -> Read:
    """Tables and manifest of one rank."""
    chrome = chrome_tables(events)
    cores = core_tables(chrome.spans, chrome.flows, chrome.args, metadata)
    tables, said = _tables(chrome, rank, groups_of(metadata), cores)
    unread = unread_tags(chrome.spans)
    npu = chrome.npu
    tied = {TIED: chrome.num_tied} if chrome.num_tied else {}
    report = ReadReport(
        read=chrome.read,
        skipped=dict(
            Counter(chrome.skipped) + aside.skipped + Counter({UNREAD: sum(unread.values())})
        ),
        repaired=dict(Counter(chrome.repaired) + aside.repaired),
        inferred=num_inferred(tables) | tied | (cores.inferred if cores else {}),
        notes=(
            *aside.notes,
            *said,
            *about_unread(unread),
            *(npu.notes if npu else ()),
            *(cores.notes if cores else ()),
        ),
    )
    found: Metadata = {NPU_KERNELS: npu.kernels} if npu and npu.kernels else {}
    found |= {"device": cores.device} if cores and cores.device else {}
    by = SWIMLANE if cores else npu.producer if npu else None
    return tables, _manifest(metadata, rank, report, tables, found, by, closed=closed)


def _is_further(sought: re.Pattern[bytes], start: bytes, path: Path) -> bool:
    """Whether it is anywhere in what may be told apart from lines of JSON by its beginning."""
    if path.is_dir() or is_value(start.partition(b"\n")[0]):
        return False
    left, end = SNIFF_BYTES, b""
    try:
        for block in Inflater(path):
            if sought.search(end + block):
                return True
            left, end = left - len(block), block[-_OVERLAP_BYTES:]
            if left <= 0:
                break
    except TraceError:
        pass
    return False


def _tables(
    chrome: ChromeTables, rank: int, groups: dict[str, str], cores: CoreTables | None
) -> tuple[dict[str, Frame], Iterator[str]]:
    steps, spans, notes = steps_by(chrome.tags, chrome.spans)
    candidates = spans[chrome.candidates["span"]].with_columns(chrome.candidates["args"])
    tables: dict[str, pl.DataFrame] = {
        "steps": steps,
        "collectives": infer_collectives(
            candidates.with_columns(cs.enum().cast(pl.String)), spans, groups
        ),
        "spans": spans.drop("base"),
        "flows": chrome.flows,
        "counters": chrome.counters,
        **(cores.tables if cores else {}),
    }
    number = pl.lit(rank, pl.Int32).alias("rank")
    args = chrome.args
    if cores:
        tables["spans"], args = _without(tables["spans"], args, cores.rows)
    filled = {name: frame.with_columns(number) for name, frame in tables.items() if len(frame)}
    found: dict[str, Frame] = dict(filled)
    if "spans" in filled:
        found["spans"] = Spooled(filled["spans"], "args", args)
    return found, notes


def _without(spans: pl.DataFrame, args: Spool, rows: pl.Series) -> tuple[pl.DataFrame, Spool]:
    """Return spans and their packed args without some rows."""
    is_left = pl.repeat(True, len(spans), dtype=pl.Boolean, eager=True).scatter(rows, False)
    gone = spans["span"].gather(rows)
    parent = pl.when(~pl.col("parent").is_in(gone.implode())).then("parent")
    return spans.with_columns(parent).filter(is_left), own_texts(args, is_left)


def _rank(metadata: Metadata, path: Path) -> int:
    info = metadata.get("distributedInfo")
    rank = info.get("rank") if isinstance(info, dict) else None
    if isinstance(rank, int) and 0 <= rank < 1 << 31:
        return int(rank)
    return rank_in_name(path) or 0


def _damage(stream: EventStream[Any], held: Contents) -> list[str]:
    num_bytes = stream.buffers.num_bytes
    if ended := held.damage or stream.beyond:
        return [f"{ended} after {num_bytes} bytes of content; all before is kept"]
    return [f"cut off after {num_bytes} bytes; all whole events are kept"] * stream.cut_off


def _left_out(metadata: Metadata) -> list[str]:
    names = [name for name in ("samples", "stackFrames", "systemTraceEvents") if metadata.get(name)]
    return [f"not read: {', '.join(names)}"] if names else []


def _manifest(
    metadata: Metadata,
    rank: int,
    report: ReadReport,
    tables: dict[str, Frame],
    found: Metadata,
    by: str | None,
    *,
    closed: bool,
) -> Manifest:
    producer, version, clock = _producer(metadata, by)
    state = "complete" if closed else "partial"
    base = metadata.get("baseTimeNanoseconds")
    epoch_ns = int(base) if isinstance(base, int | float) and 0 < base < LIMIT_NS else 0
    return Manifest(
        producer=producer,
        producer_version=version,
        clock=ClockInfo(clock, epoch_ns),
        ranks=(rank,),
        config=_kept(metadata) | found,
        tables={
            name: "inferred" if "inferred" in table.lazy().collect_schema() else state
            for name, table in tables.items()
        }
        | {name: "inferred" for name in CORE_TABLES if closed and name in tables},
        closed=closed,
        report=report,
    )


def _producer(metadata: Metadata, by: str | None) -> tuple[str, str, str]:
    """Who recorded it, which events may tell (`by`): name, version and kind of clock."""
    ours = metadata.pop("stepscope", None)
    if isinstance(ours, dict) and ours.get("clock") in CLOCKS:
        return _text(ours.get("producer")), _text(ours.get("producer_version")), ours["clock"]
    if version := _text(metadata.get("vllm_version")):
        return "vLLM", version, "profiler"
    if by:
        return by, "", "profiler"
    return ("torch.profiler" if "schemaVersion" in metadata else "Chrome JSON"), "", "profiler"


def _text(value: object) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _kept(metadata: Metadata) -> Metadata:
    """What the file says about itself, but for what is long (logs, the properties of devices)."""
    kept: Metadata = {}
    for name, value in metadata.items():
        try:
            text = json.dumps({name: value}, ensure_ascii=False)
        except (ValueError, RecursionError):
            continue
        if len(text) <= _KEPT_CHARS:
            kept |= json.loads(text.encode("utf-8", "replace"))
    return kept
