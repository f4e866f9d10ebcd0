"""Reader of Jaeger spans, which hold the same data as OTLP spans, in microseconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import blocks_of
from stepscope.ingest.readers.jaeger.decode import DEPTH, as_otlp, is_process, is_record, tags
from stepscope.ingest.readers.otlp.collect import Collected
from stepscope.ingest.readers.otlp.decode import decoded
from stepscope.ingest.readers.otlp.reader import trace_of
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.json_records import JsonRecords, Record

_BEGINS = re.compile(rb"\s*[\[{]")
_MARKS = (b'"traceID"', b'"operationName"')
_TRACE = -2
"""Index into `Record.within`: the number of the trace of a span or process."""


class JaegerReader(OneFile):
    """Reads spans with their tags and logs, and the request events in them."""

    name = "Jaeger's spans (JSON)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell JSON that names traces and operations as Jaeger does."""
        begins = _BEGINS.match(head.removeprefix(b"\xef\xbb\xbf")) is not None
        return begins and all(mark in head for mark in _MARKS)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read spans and lifecycles; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        records = JsonRecords(blocks, is_record, DEPTH, limits)
        found = Collected(limits)
        _add_all(found, records)
        found.add_stages()
        ended = found.beyond or blocks.damage or records.ended
        return trace_of(found, ended, records.num_bytes, path, "Jaeger")


def _add_all(found: Collected, records: Iterable[Record]) -> None:
    """Add spans and processes up to the limit of events.

    Processes may come before or after the spans that refer to them by an id within the trace.
    """
    resources: dict[tuple[int, str], int] = {}
    scopes: dict[str, int] = {}
    for record in records:
        trace = record.within[_TRACE] if len(record.within) >= -_TRACE else 0
        said = decoded(record.text)
        if is_process(record.path):
            process = resources.setdefault((trace, record.path[-1]), len(resources) + 1)
            about = said or {}
            found.add_resource(
                process, {**tags(about.get("tags")), "service.name": about.get("serviceName")}
            )
            continue
        if said is None:
            found.add_span(None, 0, 0)
            continue
        of_process = trace, str(said.get("processID"))
        resource = resources.setdefault(of_process, len(resources) + 1)
        span, scope = as_otlp(said)
        number = scopes.setdefault(scope, len(scopes) + 1) if scope else 0
        if scope:
            found.name_scope(number, scope)
        found.add_span(span, resource, number)
        if found.is_full():
            return
