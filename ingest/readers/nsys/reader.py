"""Reader of what Nsight Systems exports: `nsys export --type sqlite report.nsys-rep`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.sqlite import MAGIC, Database, database
from stepscope.ingest.readers.nsys.collect import (
    collected,
    diagnostics,
    metrics,
    others,
    ran_on_devices,
)
from stepscope.ingest.readers.nsys.decode import METRICS, NVTX
from stepscope.ingest.readers.nsys.tables import named_spans
from stepscope.ingest.readers.profile_tables import profile_tables
from stepscope.ingest.readers.profiles import rank_in_name
from stepscope.ingest.readers.seam import OneFile

_MARKS = (b"TABLE StringIds", b"CUPTI_ACTIVITY_KIND_", b"META_DATA_EXPORT", NVTX.encode())
NO_KERNELS = (
    "no kernel, copy or fill of a GPU is in it: profile with --trace=cuda,nvtx the process that "
    "uses the GPU, and its children"
)
_MOST_SAID = 3
"""Of so many messages of Nsight Systems the first line of an error tells."""
_START = {"utcEpochNs": "integer"}
_ABOUT = {"name": "text", "value": "text"}
_PRODUCT, _VERSION = "EXPORT_PRODUCT_NAME", "EXPORT_PRODUCT_VERSION"


class NsysReader(OneFile):
    """Reads kernels, copies, calls and NVTX ranges, and counts what else has a time."""

    name = "Nsight Systems export (.sqlite)"
    one_per_rank = True

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a database whose first pages make a table that only an export has."""
        return head.startswith(MAGIC) and any(mark in head for mark in _MARKS)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans and counters, and infer steps and collectives; raises `TraceError`."""
        with database(path, progress, limits) as opened:
            found = collected(opened)
            counters = metrics(opened, found) if METRICS in opened.tables else None
            named = named_spans(opened, found, rank_in_name(path) or 0)
            left = {f"{table} (not read)": num for table, num in others(opened) if num}
            epoch_ns = _first(opened, "TARGET_INFO_SESSION_START_TIME")
            about = dict(opened.whole("META_DATA_EXPORT", _ABOUT).drop_nulls().iter_rows())
            messages = [] if ran_on_devices(found) else diagnostics(opened)
            damage = opened.damage
            refused = opened.refused
        if not found.read.total():
            told = next((f": {why}" for why in damage.values()), "")
            said = "".join(f"; {message}" for message in messages[:_MOST_SAID])
            what = f"no row of it says what a device or a thread did{told}{said}"
            raise (TruncatedTrace if damage else TraceError)(
                what, where=str(path), todo="export the report again with --type sqlite"
            )
        profile = profile_tables(named.spans, counters=counters)
        skipped = Counter(left) + found.skipped + refused
        notes = [f"{what}: {why}; all rows before are kept" for what, why in damage.items()]
        if not ran_on_devices(found):
            notes += [NO_KERNELS, *messages]
        report = profile.report(found.read, skipped, found.repaired, [*notes, *named.notes])
        config = {"processes": named.processes} if len(named.processes) > 1 else {}
        return profile.tables, profile.manifest(
            about.get(_PRODUCT) or "Nsight Systems", about.get(_VERSION) or "", epoch_ns, report,
            config, closed=not damage,
        )  # fmt: skip


def _first(opened: Database, table: str) -> int:
    told = opened.whole(table, _START)["utcEpochNs"].drop_nulls()
    return int(told[0]) if len(told) else 0
