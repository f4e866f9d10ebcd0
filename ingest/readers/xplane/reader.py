"""Reader of XPlane (`.xplane.pb`): profiles of JAX, TensorFlow and PyTorch/XLA."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.profile_tables import profile_tables
from stepscope.ingest.readers.profiles import rank_in_name
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.xla_lines import DEVICE
from stepscope.ingest.readers.xplane.collect import Collected
from stepscope.ingest.readers.xplane.split import FieldStream, is_xspace
from stepscope.ingest.readers.xplane.tables import named_spans, num_further

TIMELESS = "events with times beyond all"
_START = "profile_start_time"
_DATED_NS = 10**18
_MOST_SHOWN = 64


class XPlaneReader(OneFile):
    """Reads events of devices and hosts with their arguments, and counts what it leaves out."""

    name = "XPlane of JAX, TensorFlow or PyTorch/XLA (.xplane.pb)"
    one_per_rank = True

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell planes that have a name in text."""
        return is_xspace(head)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans and flows, and infer steps and collectives; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        stream = FieldStream(blocks, limits)
        found = Collected(limits)
        found.add_all(stream)
        ended = found.beyond or blocks.damage or ("cut off" if stream.cut_off else None)
        named = named_spans(found, rank_in_name(path) or 0)
        if named.spans.is_empty():
            told = f": {ended} after {stream.num_bytes:,} bytes" if ended else ""
            what = f"no event of it can be read{told}"
            raise (TruncatedTrace if ended else TraceError)(
                what, where=str(path), todo="record or copy it again"
            )
        profile = profile_tables(named.spans, named.flows)
        notes = [f"{ended} after {stream.num_bytes:,} bytes; all before is kept"] if ended else []
        if stream.num_lost:
            notes.append(f"{stream.num_lost:,} bytes that are not fields passed over")
        report = profile.report(
            _num_read(named.spans),
            found.skipped + Counter(stream.too_large() | {TIMELESS: named.num_timeless}),
            num_further(found),
            [*notes, *found.notes],
        )
        closed = ended is None and not stream.num_lost
        return profile.tables, profile.manifest(
            "XPlane", "", _epoch_ns(found), report, _config(found), closed=closed
        )


def _num_read(spans: pl.DataFrame) -> dict[str, int]:
    """How many events there are of devices, which have their plane for a base, and of hosts."""
    of_hosts = spans["base"].null_count()
    return {"events of devices": len(spans) - of_hosts, "events of hosts": of_hosts}


def _epoch_ns(found: Collected) -> int:
    """When the profile began, where the times of lines count from then."""
    lines = [line for plane in found.planes for line in plane.lines if line.num_events]
    if any(line.since_ns >= _DATED_NS for line in lines):
        return 0
    told = (plane.numbers().get(_START, 0) for plane in found.planes)
    return max(told, default=0)


def _config(found: Collected) -> dict[str, object]:
    """The hosts and devices, and what is said of each of the latter in numbers."""
    devices = {
        plane.name: plane.numbers()
        for plane in found.planes[:_MOST_SHOWN]
        if plane.name.startswith(DEVICE)
    }
    said: dict[str, object] = {"hosts": found.hosts[:_MOST_SHOWN], "devices": devices}
    return {name: value for name, value in said.items() if value}
