"""Reader of the logs of inference engines, several in one file, other lines in between, or torn.

A file is a log when a line of it reads as one of an engine's; how far is looked for one is limited.
What is not a line of an engine is counted and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import polars as pl

from stepscope.ingest.derive.log_steps import LENGTHS, with_lengths
from stepscope.ingest.errors import LimitExceeded, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, LogMessage, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import Inflater, blocks_of
from stepscope.ingest.readers.logs.decode import LINE_FORMATS
from stepscope.ingest.readers.logs.failures import Failures
from stepscope.ingest.readers.logs.split import documents, is_spread
from stepscope.ingest.readers.seam import HEAD_BYTES, OneFile
from stepscope.ingest.readers.text.collect import YEAR_ASSUMED, Line, LogRows
from stepscope.ingest.readers.text.split import (
    NO_END,
    NO_STAMP,
    SNIFF_BYTES,
    Lines,
    as_utf8,
    is_text,
    origin_of,
    text_of,
)
from stepscope.ingest.readers.text.times import UNDATED

OTHER_LINES = "lines of no engine's steps"
RESTARTED = (
    "a server starts after the last report, and no line says how the one that reported ended"
)
CUT_OFF = "cut off by the end of the file"
_INFERRED = ("steps", "batch_rows", "lifecycle", "allocations")


class EngineLog:
    """The lines of a log read one after the other, into rows and messages of failures."""

    def __init__(self, limits: Limits = DEFAULTS, failures: Failures | None = None) -> None:
        self.rows = LogRows(limits)
        self.is_cut_off = False
        self._failures = failures
        self._formats = [made() for made in LINE_FORMATS]
        self._by_marker = {mark: each for each in self._formats for mark in each.markers}
        marks = sorted(self._by_marker, key=len, reverse=True)
        self._marker = re.compile("|".join(map(re.escape, marks)).encode())

    def read(self, lines: Iterable[tuple[bytes, bool]]) -> Iterator[str]:
        """Read lines; gives the kind of each that is an engine's."""
        for content, is_whole in lines:
            match = self._marker.search(content)
            if match is None:
                self.rows.skipped[OTHER_LINES] += 1
                if self._failures is not None:
                    self._failures.other(content, self.rows.sources)
            elif kind := self._take(match[0].decode(), content, is_whole=is_whole):
                if self._failures is not None:
                    self._failures.reported(content, self.rows.sources, self.rows.latest_ns or None)
                yield kind
        for each in self._formats:
            each.end(self.rows)

    def _take(self, marker: str, content: bytes, *, is_whole: bool) -> str | None:
        reads = self._by_marker[marker]
        text, packed_time = text_of(content)
        if marker not in text:  # an engine's own JSON, which looks as if a line were packed in it
            text, packed_time = content.decode("utf-8", "replace"), NO_STAMP
        kind = reads.take(Line(text, origin_of(text), packed_time, is_whole), self.rows)
        if kind:
            self.rows.read[kind] += 1
            self.rows.repaired[NO_END] += not is_whole
        elif is_whole:
            self.rows.skipped[f"{reads.name} lines that do not read as any known"] += 1
        else:
            self.is_cut_off = True
            self.rows.skipped[CUT_OFF] += 1
        return kind


class EngineLogReader(OneFile):
    """Reads steps, counters and what is told of requests; names every log line it is from."""

    name = f"log of an engine ({', '.join(made.name for made in LINE_FORMATS)})"  # type: ignore[misc]  # a name may be a field too
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a text in which a line of an engine is; looks beyond the head where it must."""
        if not is_text(head) or path.is_dir():
            return False
        return is_spread(head) or self._is_in([head]) or self._is_in(_first_bytes(path))

    def _is_in(self, blocks: Iterable[bytes]) -> bool:
        try:
            return any(EngineLog().read(Lines(blocks)))
        except TraceError:
            return False

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the tables and the manifest; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        failures = Failures()
        lines, log = Lines(blocks, limits.line), EngineLog(limits, failures)
        ended = None
        try:
            is_json = is_spread(_head(path))
            for _ in log.read(documents(as_utf8(blocks), limits) if is_json else lines):
                pass
        except LimitExceeded as error:
            ended = f"{error.what} ({error.todo})"
        if not log.rows.read:
            raise TraceError("no line in it was written by a known engine", where=str(path))
        log.rows.skipped.update(lines.left_out())
        if failures.is_silent_restart:
            log.rows.notes[RESTARTED] = None
        tables = _tables(log.rows)
        ended = ended or blocks.damage
        closed = not log.is_cut_off and ended is None
        messages = failures.end(log.rows.latest_ns or None)
        return tables, _manifest(log.rows, tables, messages, ended, closed=closed)


def _tables(rows: LogRows) -> dict[str, Frame]:
    tables = dict(rows.tables())
    if "steps" in tables and _clock(rows) != "none":
        for name in {"steps", "batch_rows"} & tables.keys() if rows.stated else ():
            tables[name] = _with_stated(tables[name], rows)
        tables["steps"], num = with_lengths(tables["steps"], rows.over)
        rows.inferred[LENGTHS] += num
    return dict(tables)


def _with_stated(table: pl.DataFrame, rows: LogRows) -> pl.DataFrame:
    """Place steps, or rows of their batches, when a later line of the log says that they were."""
    whole = {"rank": table.schema["rank"], "step": table.schema["step"]}
    stated = pl.DataFrame(
        [(*step, *times) for step, times in rows.stated.items()],
        schema={**whole, "stated_ns": pl.Int64, "lasted_ns": pl.Int64}, orient="row",
    )  # fmt: skip
    placed = table.join(stated, on=["rank", "step"], how="left", maintain_order="left")
    lasted = pl.coalesce("dur_ns", "lasted_ns") if "dur_ns" in table.columns else None
    return placed.with_columns(
        ts_ns=pl.coalesce("stated_ns", "ts_ns"), **({} if lasted is None else {"dur_ns": lasted})
    ).drop("stated_ns", "lasted_ns")


def _head(path: Path) -> bytes:
    return next(as_utf8(Inflater(path)), b"")[:HEAD_BYTES]


def _first_bytes(path: Path) -> Iterator[bytes]:
    left = SNIFF_BYTES
    for block in Inflater(path):
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return


def _manifest(
    rows: LogRows,
    tables: dict[str, Frame],
    messages: tuple[LogMessage, ...],
    damage: str | None,
    *,
    closed: bool,
) -> Manifest:
    sources = sorted(rows.sources.values(), key=lambda source: source.rank)
    engines = list(dict.fromkeys(engine for engine, _, _ in rows.sources))
    report = ReadReport(
        read=dict(rows.read),
        skipped={what: num for what, num in rows.skipped.items() if num},
        repaired={what: num for what, num in rows.repaired.items() if num},
        inferred={what: num for what, num in rows.inferred.items() if num},
        notes=tuple(chain(rows.notes, _about_times(rows), _damage(damage))),
        messages=messages,
    )
    return Manifest(
        producer=" and ".join(engines),
        clock=ClockInfo(_clock(rows)),
        ranks=tuple(source.rank for source in sources) or (0,),
        config={"sources": {str(source.rank): source.name for source in sources}},
        tables={
            name: "inferred" if name in _INFERRED else "complete" if closed else "partial"
            for name in tables
        },
        closed=closed,
        report=report,
    )


def _stamps(rows: LogRows) -> set[str]:
    return {kind for source in rows.sources.values() for kind in source.stamps}


def _clock(rows: LogRows) -> str:
    found = _stamps(rows)
    if found & {"dated", "undated"}:
        return "wall"
    if "uptime" in found:
        return "profiler"
    return "none" if found == {"position"} and not rows.has_stated_times else "virtual"


def _about_times(rows: LogRows) -> Iterator[str]:
    found = _stamps(rows)
    if "position" in found:
        yield "lines without a time have an order and no times: their distance is no duration"
    if YEAR_ASSUMED in rows.inferred:
        yield (
            f"no line says the year: the first time is shown in {UNDATED.year}, or on its first "
            "day where it says no day either"
        )
    if found & {"dated", "undated"}:
        yield "times without a zone are read as UTC"


def _damage(damage: str | None) -> Iterator[str]:
    if damage:
        yield f"{damage}; all lines before are kept"
