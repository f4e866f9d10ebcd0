"""Reader of the JSON of rocprofv3: `rocprofv3 --output-format json`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.profile_tables import profile_tables
from stepscope.ingest.readers.profiles import rank_in_name
from stepscope.ingest.readers.rocprofv3.collect import Collected
from stepscope.ingest.readers.rocprofv3.decode import COUNTED, DEPTH, ROOT, is_record, number
from stepscope.ingest.readers.rocprofv3.tables import counters_of, spans_of
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.json_records import JsonRecords, begins_object

BACKWARDS = "end before begin taken as its begin"
_MARK = f'"{ROOT}"'.encode()
_KEPT = ("pid", "command", "init_time", "fini_time")


class Rocprofv3Reader(OneFile):
    """Reads kernels, copies, calls and roctx ranges, and counts records that say no time."""

    name = "rocprofv3's JSON (.json)"
    one_per_rank = True

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell an object that names the tool."""
        return begins_object(head) and _MARK in head

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans, and infer steps and collectives; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        records = JsonRecords(blocks, is_record, DEPTH, limits)
        found = Collected(limits)
        found.add_all(records)
        beyond = found.beyond and f"more than {found.beyond}"
        ended = beyond or blocks.damage or records.ended
        if not found.read:
            where = f": {ended} after {records.num_bytes:,} bytes" if ended else ""
            what = f"no record of it says when something ran{where}"
            raise (TruncatedTrace if ended else TraceError)(
                what, where=str(path), todo="record again, with --kernel-trace for example"
            )
        rank = rank_in_name(path) or 0
        spans, num_backwards = spans_of(found, rank)
        counters, num_timeless = counters_of(found, rank)
        profile = profile_tables(spans, counters=counters)
        skipped = found.skipped + Counter({f"{COUNTED}: values without a time": num_timeless})
        notes = [f"{ended} after {records.num_bytes:,} bytes; all before is kept"] if ended else []
        repaired = {BACKWARDS: num_backwards, **found.texts.repaired}
        report = profile.report(found.read, skipped, repaired, [*notes, *_notes(found)])
        return profile.tables, profile.manifest(
            "rocprofv3", "", 0, report, _config(found, limits), closed=ended is None
        )


def _notes(found: Collected) -> list[str]:
    if len(found.about) < 2:
        return []
    pids = [str(number(about.get("pid"))) for about in found.about.values()]
    return [f"each process is a rank, in the order of the file: {', '.join(pids[:64])}"]


def _config(found: Collected, limits: Limits) -> dict[str, object]:
    first = next(iter(found.about.values()), {})
    said = {name: first[name] for name in _KEPT if name in first}
    return {
        name: value for name, value in said.items() if len(str(value)) <= min(4096, limits.text)
    }
