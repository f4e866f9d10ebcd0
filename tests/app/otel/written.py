"""Traces written as OTLP and read again, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.analyzers.check.run import check
from stepscope.app.otel.laid_out import laid_out
from stepscope.app.otel.telling import Told, write
from stepscope.ingest.trace import Trace

KINDS = ("spans", "metrics")
Phase = tuple[int, str, str, int, int | None]


def told(trace: Trace, *kinds: str, began_ns: int | None = None) -> Told:
    return Told(trace, laid_out(trace, began_ns), kinds or KINDS, check, "9.9")


def written(trace: Trace, folder: Path, *kinds: str) -> Path:
    file = folder / "run.otlp.json"
    write(told(trace, *(kinds or ("spans",))), file)
    return file


def phases_in(trace: Trace) -> list[Phase]:
    """The phases among the spans of a trace that was read: rank, request, phase, from, to."""
    found = []
    columns = ("rank", "args", "ts_ns", "dur_ns", "form")
    spans = trace.spans.filter(pl.col("form") != "instant").select(columns).collect()
    for rank, args, ts_ns, dur_ns, form in spans.iter_rows():
        said: dict[str, Any] = json.loads(args)
        if "stepscope.phase" in said:
            ends = None if form == "unfinished" else ts_ns + dur_ns
            request = said["gen_ai.request.id"]
            found.append((rank, request, said["stepscope.phase"], ts_ns, ends))
    return sorted(found, key=repr)
