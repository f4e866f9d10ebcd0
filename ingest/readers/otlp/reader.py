"""Reader of spans of OpenTelemetry: OTLP's JSON, one object, an array or one a line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import TraceError, TruncatedTrace
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.otlp.collect import Collected
from stepscope.ingest.readers.otlp.decode import DEPTH, ROOT, SCOPES, TEMPO_ROOT, is_record
from stepscope.ingest.readers.otlp.own import Origin
from stepscope.ingest.readers.otlp.tables import lifecycle_of, spans_of
from stepscope.ingest.readers.profile_tables import profile_tables
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.json_records import JsonRecords

BACKWARDS = "end before begin taken as its begin"
_MOST_SHOWN = 64
ABOUT_REQUESTS = (
    "requests arrive when their span begins; when they were let in, and had their first token, is "
    "counted from there by the span's latencies"
)
ABOUT_STAGES = (
    "requests with spans of the scheduler below their own arrive, are admitted, have their first "
    "token and finish as those begin and end (prefill_waiting, prefill_forward, decode_forward)"
)


class OtlpReader(OneFile):
    """Reads spans with their attributes, and what these tell of requests."""

    name = "OpenTelemetry's spans (OTLP JSON)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell an object, or an array of objects, that names spans of resources."""
        is_tempo = f'"{TEMPO_ROOT}"'.encode() in head and any(
            f'"{scopes}"'.encode() in head for scopes in SCOPES
        )
        is_json = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
        return is_json and (f'"{ROOT}"'.encode() in head or is_tempo)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans and lifecycles; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        records = JsonRecords(blocks, is_record, DEPTH, limits)
        found = Collected(limits)
        found.add_all(records)
        found.add_stages()
        ended = found.beyond or blocks.damage or records.ended
        return trace_of(found, ended, records.num_bytes, path, "OpenTelemetry")


def trace_of(
    found: Collected, ended: str | None, num_bytes: int, path: Path, producer: str
) -> tuple[dict[str, Frame], Manifest]:
    """The tables of what was collected, and a manifest; raises `TraceError` if there is no span.

    `ended` says why reading stopped before the end of the file, after `num_bytes`; None if not.
    """
    if not found.read:
        where = f": {ended} after {num_bytes:,} bytes" if ended else ""
        skipped = ", ".join(f"{num:,} {what}" for what, num in found.skipped.items())
        where += f" ({skipped})" if skipped else ""
        raise (TruncatedTrace if ended else TraceError)(
            f"no span of it can be read{where}", where=str(path), todo="export it again"
        )
    spans, num_backwards = spans_of(found)
    origin = found.origin
    profile = profile_tables(_earlier(spans, origin))
    notes = [f"{ended} after {num_bytes:,} bytes; all before is kept"] if ended else []
    has_stages = [bool(request.stages) for request in found.requests.values()]
    notes += [ABOUT_REQUESTS] if not all(has_stages) else []
    notes += [ABOUT_STAGES] if any(has_stages) else []
    repaired = {BACKWARDS: num_backwards, **found.texts.repaired}
    report = profile.report(found.read, found.skipped, repaired, notes)
    config = {"services": sorted({*found.services.values()})[:_MOST_SHOWN]}
    manifest = profile.manifest(producer, "", 0, report, config, closed=ended is None)
    manifest = replace(manifest, clock=ClockInfo("wall"))
    if origin is not None:
        manifest = replace(manifest, clock=origin.clock, producer=origin.producer,
                           producer_version=origin.version,
                           closed=manifest.closed and origin.closed)  # fmt: skip
    if not found.requests and not found.own:
        return profile.tables, manifest
    lifecycle = _earlier(lifecycle_of(found), origin)
    told = "inferred" if origin is None else _told(found, origin)
    tables: dict[str, Frame] = {"lifecycle": lifecycle, **profile.tables}
    return tables, replace(manifest, tables={"lifecycle": told, **manifest.tables})


def _earlier(rows: pl.DataFrame, origin: Origin | None) -> pl.DataFrame:
    """Rows on the clock of the trace that they are of."""
    return rows if origin is None else rows.with_columns(pl.col("ts_ns") - origin.zero_ns)


def _told(found: Collected, origin: Origin) -> str:
    """How much of a lifecycle it is: what lets spans go on the way leaves less than was written."""
    is_whole = len(found.own) == origin.num_requests and all(each.is_whole for each in found.own)
    return origin.told if is_whole or origin.told == "inferred" else "partial"
