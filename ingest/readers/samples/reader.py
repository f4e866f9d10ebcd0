"""Reader of measurements over time in CSV: each cell is a sample of the counter of its column."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.errors import LimitExceeded, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.samples.decode import Series, cells, series_of
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.collect import Line, LogRows
from stepscope.ingest.readers.text.fields import Number, number
from stepscope.ingest.readers.text.split import NO_END, Lines
from stepscope.ingest.times import SECOND

NAME = "measurements"
LINES, HEADERS = "lines of measurements", "headers"
MALFORMED = "lines without a time, or of another number of cells"
NO_NUMBER = "cells that are not a number"
_BOM = b"\xef\xbb\xbf"
_LAST_S = 1 << 32


class SamplesReader(OneFile):
    """Reads counters; what is not a number is counted."""

    name = "measurements over time (CSV)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell by the header."""
        return bool(series_of(head.removeprefix(_BOM)))

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the samples; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        rows, lines = LogRows(limits), Lines(blocks, limits.line)
        ended = None
        try:
            _read(rows, lines)
        except LimitExceeded as error:
            ended = f"{error.what} ({error.todo})"
        rows.skipped.update(lines.left_out())
        if not rows.read[LINES]:
            raise TraceError("it holds no measurement", where=str(path))
        return dict(rows.tables()), _manifest(rows, ended or blocks.damage)


def _read(rows: LogRows, lines: Lines) -> None:
    source, series = rows.source(NAME, Line("")), list[Series]()
    for line, is_whole in lines:
        if lines.num_lines == 1:
            series = series_of(line.removeprefix(_BOM))
            rows.read[HEADERS] += bool(series)
            continue
        first, *others = cells(line) or [""]
        seconds = number(first)
        if not is_whole:
            rows.repaired[NO_END] += 1
        if seconds is None or not 0 <= seconds.value < _LAST_S or len(others) != len(series):
            rows.skipped[MALFORMED] += 1
            continue
        rows.read[LINES] += 1
        told = {each.name: _sample(each, cell) for each, cell in zip(series, others, strict=True)}
        rows.skipped[NO_NUMBER] += sum(each is None for each in told.values())
        samples = {name: each for name, each in told.items() if each is not None}
        rows.counters(source, round(seconds.value * SECOND), samples)


def _sample(series: Series, cell: str) -> Number | None:
    found = number(cell)
    return Number(found.value, series.unit or found.unit) if found else None


def _manifest(rows: LogRows, damage: str | None) -> Manifest:
    notes = ["times count from where the measurement began"]
    if damage:
        notes.append(f"{damage}; all lines before are kept")
    return Manifest(
        producer=NAME,
        clock=ClockInfo("profiler"),
        tables={"counters": "partial" if damage else "complete"},
        closed=damage is None,
        report=ReadReport(
            read=dict(+rows.read),
            skipped=dict(+rows.skipped),
            repaired=dict(+rows.repaired),
            notes=tuple(notes),
        ),
    )
