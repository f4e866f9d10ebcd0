"""Reader of lists of requests: published ones, workloads of simulators, and what was measured.

What the lines say is in `decode`. The length of the output stands as `max_tokens`: that many tokens
were or are to be generated, so no more than that are asked for. A list of arrivals is no run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import LimitExceeded, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.requests.collect import RequestList, list_of
from stepscope.ingest.readers.requests.tables import lifecycle
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.split import NO_END, Lines

HEADERS = "headers"
MALFORMED = "lines that are not a request"
_BOM = b"\xef\xbb\xbf"
_CHUNK_BYTES = 4 << 20
"""So much is read at a time: a line of a workload may be of as many requests as fit into it."""


@dataclass(slots=True)
class _List:
    """The requests so far, and what was counted."""

    limit: int
    kind: RequestList | None = None
    num: int = 0
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    _frames: list[pl.DataFrame] = field(default_factory=list)

    def read_all(self, lines: Lines) -> None:
        """Read every line; raises `LimitExceeded` where there are too many."""
        chunk: list[bytes] = []
        num_bytes = 0
        for line, is_whole in lines:
            self.repaired[NO_END] += not is_whole
            if lines.num_lines == 1 and self._is_header(line.removeprefix(_BOM)):
                continue
            chunk.append(line.removeprefix(_BOM))
            num_bytes += len(line)
            if num_bytes >= _CHUNK_BYTES:
                self._add(chunk)
                chunk, num_bytes = [], 0
        self._add(chunk)
        self.skipped.update(lines.left_out())

    def requests(self) -> pl.DataFrame:
        """All of them, in the order of the list."""
        return pl.concat(self._frames)

    def _is_header(self, line: bytes) -> bool:
        self.kind = list_of(line)
        is_header = self.kind is not None and self.kind.is_header(line)
        self.read[HEADERS] += is_header
        return is_header

    def _add(self, lines: list[bytes]) -> None:
        """Keep those lines that are a request: from 1970, no length below 0."""
        if self.kind is None:
            self.skipped[MALFORMED] += len(lines)
            return
        found = self.kind.rows(lines, self.skipped)
        kept = found.filter(pl.col("ts_ns").is_not_null())
        room = self.limit - self.num
        self._frames.append(kept.head(room))
        self.num += min(len(kept), room)
        self.read[self.kind.unit] = self.num
        self.skipped[MALFORMED] += len(found) - len(kept)
        if len(kept) > room:
            raise LimitExceeded(f"more than {self.limit:,} requests", todo=raised_by("rows"))


class RequestsReader(OneFile):
    """Reads when requests came and how long they are; what is not a request is counted."""

    name = "list of requests (Azure's CSV; JSON lines of Mooncake, LLMServingSim and AIBrix)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell by the first line."""
        return list_of(head.removeprefix(_BOM)) is not None

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the requests; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        found = _List(limits.rows)
        ended = None
        try:
            found.read_all(Lines(blocks, limits.line))
        except LimitExceeded as error:
            ended = f"{error.what} ({error.todo})"
        if not found.num or found.kind is None:
            raise TraceError("no line in it is a request", where=str(path))
        table = lifecycle(found.requests())
        return {"lifecycle": table}, _manifest(found, found.kind, ended or blocks.damage)


def _manifest(found: _List, kind: RequestList, damage: str | None) -> Manifest:
    notes = [*kind.notes, f"{damage}; all lines before are kept"] if damage else list(kind.notes)
    return Manifest(
        producer=kind.producer,
        clock=ClockInfo(kind.clock),
        tables={"lifecycle": "partial" if damage else "complete"},
        closed=damage is None,
        report=ReadReport(
            read=dict(+found.read),
            skipped=dict(+found.skipped),
            repaired=dict(+found.repaired),
            notes=tuple(notes),
        ),
    )
