"""Reader of published lists of requests: each line an arrival, in the table of lifecycles.

What the lines say is in `decode`. The length of the output stands as `max_tokens`:
that many tokens were generated, so no more than that are asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import polars as pl

from stepscope.ingest.errors import LimitExceeded, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import Inflater
from stepscope.ingest.readers.requests.decode import (
    AZURE_FIELDS,
    MooncakeRow,
    is_azure,
    is_mooncake,
    request_name,
)
from stepscope.ingest.readers.text.split import NO_END, Lines
from stepscope.ingest.times import MS

ARRIVALS, HEADERS = "arrivals", "headers"
ODD = "lines that are no request"
HASHES = "numbers of prefix blocks: no table has a column for them"
_BOM = b"\xef\xbb\xbf"
_CHUNK_LINES = 1 << 16
MOST = 1 << 62
_FORMS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")
_COLUMNS: dict[str, type[pl.DataType]] = {
    "ts_ns": pl.Int64,
    "prompt_len": pl.Int64,
    "max_tokens": pl.Int64,
}


@dataclass(slots=True)
class _List:
    """The requests so far, and what was counted."""

    limit: int
    is_csv: bool = False
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    _places: list[int] = field(default_factory=list)
    _frames: list[pl.DataFrame] = field(default_factory=list)

    def read_all(self, lines: Lines) -> None:
        """Read every line; raises `LimitExceeded` where there are too many."""
        chunk: list[bytes] = []
        for line, is_whole in lines:
            self.repaired[NO_END] += not is_whole
            if lines.num_lines == 1 and self._is_header(line):
                continue
            chunk.append(line.removeprefix(_BOM))
            if len(chunk) == _CHUNK_LINES:
                self._add(chunk)
                chunk = []
        self._add(chunk)
        self.skipped.update(lines.left_out())

    def arrivals(self) -> pl.DataFrame:
        """The table of lifecycles."""
        rows = pl.concat(self._frames)
        names = pl.Series(map(request_name, range(len(rows))), dtype=pl.String)
        return rows.with_columns(request=names, event=pl.lit("arrive"))

    def _is_header(self, line: bytes) -> bool:
        self.is_csv = is_azure(line)
        if self.is_csv:
            names = [name.strip(' "\ufeff') for name in line.decode("utf-8", "replace").split(",")]
            self._places = [names.index(n) if n in names else len(names) for n in AZURE_FIELDS]
            self.read[HEADERS] += 1
        return self.is_csv

    def _add(self, lines: list[bytes]) -> None:
        """Keep those lines that are a request: from 1970, no length below 0."""
        found = _azure(lines, self._places) if self.is_csv else _mooncake(lines, self.skipped)
        kept = found.filter(pl.all_horizontal(pl.all().is_between(0, MOST)))
        room = self.limit - self.read[ARRIVALS]
        self._frames.append(kept.head(room))
        self.read[ARRIVALS] += min(len(kept), room)
        self.skipped[ODD] += len(found) - len(kept)
        if len(kept) > room:
            raise LimitExceeded(f"more than {self.limit:,} requests", todo=raised_by("rows"))


class RequestsReader:
    """Reads when requests arrived and how long they are; what is no request is counted."""

    name = "list of requests (Azure's CSV, Mooncake's JSON lines)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell by the first line."""
        start = head.removeprefix(_BOM)
        return is_azure(start) or (start.startswith(b"{") and is_mooncake(start))

    def sources(self, path: Path) -> list[Path]:
        """The file alone."""
        return [path]

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the arrivals; raises `TraceError`."""
        blocks = Inflater(
            path, progress and (lambda done, total: progress("reading", done, total)), limits
        )
        found = _List(limits.rows)
        ended = None
        try:
            found.read_all(Lines(blocks, limits.line))
        except LimitExceeded as error:
            ended = f"{error.what} ({error.todo})"
        if not found.read[ARRIVALS]:
            raise TraceError("no line in it is a request", where=str(path))
        return {"lifecycle": found.arrivals()}, _manifest(found, ended or blocks.damage)


def _azure(lines: list[bytes], places: list[int]) -> pl.DataFrame:
    """Columns out of lines of CSV; `places` are those of the time and the two lengths."""
    text = pl.Series("line", [line.decode("utf-8", "replace") for line in lines], dtype=pl.String)
    cells = text.str.split(",").to_frame()
    time, prompt, output = (pl.col("line").list.get(at, null_on_oob=True) for at in places)
    moment = pl.coalesce(
        *(time.str.to_datetime(form, time_unit="ns", strict=False) for form in _FORMS),
        *(
            time.str.to_datetime(
                f"{form}%:z", time_unit="ns", strict=False, time_zone="UTC"
            ).dt.replace_time_zone(None)
            for form in _FORMS
        ),
    )
    return cells.select(
        ts_ns=moment.cast(pl.Int64),
        prompt_len=prompt.str.strip_chars(' "').cast(pl.Int64, strict=False),
        max_tokens=output.str.strip_chars(' "').cast(pl.Int64, strict=False),
    )


def _mooncake(lines: list[bytes], skipped: Counter[str]) -> pl.DataFrame:
    decoder = msgspec.json.Decoder(MooncakeRow)
    rows: list[tuple[int | None, int | None, int | None]] = []
    for line in lines:
        try:
            row = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            rows.append((None, None, None))
            continue
        skipped[HASHES] += len(row.hash_ids)
        rows.append((round(row.timestamp * MS), row.input_length, row.output_length))
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def _manifest(found: _List, damage: str | None) -> Manifest:
    notes = ["`max_tokens` is the length of the output that was generated"]
    if found.is_csv:
        notes.append("times without a zone are read as UTC")
    if damage:
        notes.append(f"{damage}; all lines before are kept")
    return Manifest(
        producer="Azure LLM inference trace" if found.is_csv else "Mooncake trace",
        clock=ClockInfo("wall" if found.is_csv else "profiler"),
        tables={"lifecycle": "partial" if damage else "complete"},
        closed=damage is None,
        report=ReadReport(
            read=dict(+found.read),
            skipped=dict(+found.skipped),
            repaired=dict(+found.repaired),
            notes=tuple(notes),
        ),
    )
