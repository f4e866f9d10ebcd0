"""Reader of captured KV cache events, as vLLM and SGLang publish them: msgpack, one by one."""

from __future__ import annotations

from pathlib import Path

from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.encodings.msgpack_stream import Messages
from stepscope.ingest.readers.encodings.published import damage_of
from stepscope.ingest.readers.kv_events.collect import KvEvents
from stepscope.ingest.readers.kv_events.decode import NAMES
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.collect import LogRows

_FIRST_BYTES = (0x92, 0x93, 0x94, 0xDC)
UNDECODED = "messages that cannot be decoded"
CUT_OFF = "cut off by the end of the file"


class KvEventsReader(OneFile):
    """Reads which blocks a prefix cache stored and removed, as allocations and a counter."""

    name = "KV cache events of vLLM or SGLang (msgpack)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell lists in msgpack in whose first 64 KiB an event is named."""
        is_list = head[:1] in {bytes([first]) for first in _FIRST_BYTES}
        return is_list and any(name.encode() in head for name in NAMES)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read allocations and the counter of held blocks; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        messages, events = Messages(blocks, limits.message), KvEvents(limits)
        notes = []
        try:
            for message in messages:
                events.take(message)
        except LimitExceeded as error:
            notes.append(f"{error.what} ({error.todo}); all before is kept")
        notes += damage_of(messages, blocks)
        rows = events.rows
        if not rows.read:
            what = "no batch of KV events in it"
            if notes:
                raise TruncatedTrace(
                    f"{what}: {notes[0]}", where=str(path), todo="capture it again"
                )
            raise TraceError(what, where=str(path))
        rows.skipped[UNDECODED] += messages.num_undecoded
        rows.skipped[CUT_OFF] += messages.is_cut_off
        tables: dict[str, Frame] = dict(rows.tables())
        return tables, _manifest(rows, tables, notes)


def _manifest(rows: LogRows, tables: dict[str, Frame], notes: list[str]) -> Manifest:
    sources = sorted(rows.sources.values(), key=lambda source: source.rank)
    about = ["blocks are numbered as their hashes come; which request they are of is not told"]
    if any(source.stamps["position"] for source in sources):
        about.append("batches without a time are placed 1 µs behind the batch before")
    report = ReadReport(
        read=dict(rows.read),
        skipped={what: num for what, num in rows.skipped.items() if num},
        repaired={what: num for what, num in rows.repaired.items() if num},
        inferred={what: num for what, num in rows.inferred.items() if num},
        notes=(*notes, *about),
    )
    return Manifest(
        producer="KV cache events",
        clock=ClockInfo("wall"),
        ranks=tuple(source.rank for source in sources),
        config={"sources": {str(source.rank): source.name for source in sources}},
        tables=dict.fromkeys(tables, "inferred"),
        closed=not notes,
        report=report,
    )
