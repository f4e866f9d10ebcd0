"""Reader of forward pass metrics: one record for each iteration of a scheduler, in JSON or msgpack.

A record says how many requests were in the batch, how many wait, and how long it took; not which
they were, nor when. What came over the network was given the time at which it came: a step ends
there. Of a file of records alone only the order is known, and steps are put one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import Inflater, blocks_of
from stepscope.ingest.readers.forward_pass.collect import (
    MISSING,
    POSITION,
    RECEIVED,
    ForwardPasses,
)
from stepscope.ingest.readers.forward_pass.decode import QUEUED, SCHEDULED
from stepscope.ingest.readers.forward_pass.split import Records
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.split import as_utf8

_WORDS = tuple(f'"{word}"'.encode() for word in (SCHEDULED, QUEUED, "wall_time"))
# A map in msgpack, and a list of three or four.
_FIRST_BYTES = (*range(0x81, 0x90), 0x93, 0x94, 0xDE)
_BOM = b"\xef\xbb\xbf"


class ForwardPassReader(OneFile):
    """Reads iterations as steps, and what else is told of batch and queue as counters."""

    name = "forward pass metrics of vLLM, SGLang and Dynamo (JSON lines, msgpack)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell JSON or msgpack in whose first 64 KiB the parts of a record are named."""
        words = _WORDS if _is_text(head) else tuple(word.strip(b'"') for word in _WORDS)
        is_begin = _is_text(head) or head[:1] in {bytes([first]) for first in _FIRST_BYTES}
        return is_begin and all(word in head for word in words)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read steps and counters; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        records = Records(blocks, limits, is_text=_is_text(_head(path)))
        passes, notes = ForwardPasses(limits), []
        try:
            for record in records:
                passes.take(record)
        except LimitExceeded as error:
            notes.append(f"{error.what} ({error.todo}); all before is kept")
        notes += records.damage
        if not passes.rows.read:
            raise _nothing(path, notes)
        passes.rows.skipped.update(records.skipped)
        tables: dict[str, Frame] = dict(passes.rows.tables())
        return tables, _manifest(passes, tables, notes)


def _is_text(head: bytes) -> bool:
    return head.removeprefix(_BOM).lstrip().startswith(b"{")


def _head(path: Path) -> bytes:
    return next(as_utf8(Inflater(path)), b"")


def _nothing(path: Path, notes: list[str]) -> TraceError:
    what = "no forward pass in it"
    if notes:
        return TruncatedTrace(f"{what}: {notes[0]}", where=str(path), todo="record it again")
    return TraceError(what, where=str(path))


def _manifest(passes: ForwardPasses, tables: dict[str, Frame], notes: list[str]) -> Manifest:
    rows = passes.rows
    sources = sorted(rows.sources.values(), key=lambda source: source.rank)
    stamps = {kind for source in sources for kind in source.stamps}
    state = "ordered" if POSITION in stamps else "inferred"
    report = ReadReport(
        read=dict(rows.read),
        skipped={what: num for what, num in rows.skipped.items() if num},
        repaired={what: num for what, num in rows.repaired.items() if num},
        inferred={what: num for what, num in rows.inferred.items() if num},
        notes=(*notes, *_about(stamps)),
    )
    return Manifest(
        producer="forward pass metrics",
        clock=ClockInfo("wall" if stamps == {RECEIVED} else "virtual"),
        ranks=tuple(source.rank for source in sources),
        config={"sources": {str(source.rank): source.name for source in sources}},
        tables=dict.fromkeys(tables, state),
        closed=not notes,
        dropped={"steps": rows.skipped[MISSING]} if rows.skipped[MISSING] else {},
        report=report,
    )


def _about(stamps: set[str]) -> Iterator[str]:
    yield "records say how many requests were in a batch and wait, not which they were"
    if POSITION in stamps:
        yield "records say how long an iteration took, not when it was: each is put behind the last"
    if RECEIVED in stamps:
        yield "an iteration ends when its record came"
