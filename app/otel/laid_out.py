"""Where a trace's times lie among Unix times, and what its resource says.

A clock that has no date of its own, as that of a simulation, is laid where it is asked for, else
on the second day of 1970: OTLP takes the time 0 for none. The resource says which clock it was,
and where its zero lies, so that the reader gives the trace its own times again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.app.otel.telemetry import Value
from stepscope.ingest.readers.otlp import names
from stepscope.ingest.times import FAR_NS, SECOND
from stepscope.ingest.trace import Trace

UNDATED_NS = 86_400 * SECOND
_LAST_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Where a trace's clock lies, `zero_ns`; its resource; and what ids of its spans are made of.

    `lifecycle` has the rows that can be told, `num_left_out` counts the others; `ends_ns` is the
    last moment on the trace's clock that anything tells of.
    """

    zero_ns: int
    ends_ns: int
    resource: Mapping[str, Value]
    identity: bytes
    lifecycle: pl.LazyFrame
    num_left_out: int

    def unix_ns(self, ts_ns: int) -> int:
        """When that was since 1970."""
        return self.zero_ns + ts_ns


def laid_out(trace: Trace, began_ns: int | None = None) -> LaidOut:
    """Lay a trace among Unix times; `began_ns` is where a clock without a date begins."""
    can_be_told = (
        pl.col("ts_ns").is_between(-FAR_NS, FAR_NS, closed="none")
        & pl.col("request").is_not_null()
        & pl.col("event").is_not_null()
    )
    told = trace.lifecycle.filter(can_be_told)
    about = told.select(
        earliest=pl.col("ts_ns").min(), latest=pl.col("ts_ns").max(), rows=pl.len()
    ).collect()
    earliest, latest, num_told = about.row(0)
    earliest, latest = _of_all(trace, earliest, latest)
    epoch_ns = trace.manifest.clock.epoch_ns
    is_dated = trace.manifest.clock.kind == "wall" or epoch_ns > 0
    if is_dated and epoch_ns + earliest > 0 and epoch_ns + latest < _LAST_NS:
        zero_ns = epoch_ns
    else:
        zero_ns = (UNDATED_NS if began_ns is None else began_ns) - earliest
    num_left_out = trace.num_rows("lifecycle") - num_told
    return LaidOut(
        zero_ns, latest, _resource(trace, zero_ns, num_left_out), _identity(trace, zero_ns),
        told, num_left_out,
    )  # fmt: skip


def _of_all(trace: Trace, earliest: int | None, latest: int | None) -> tuple[int, int]:
    """The first and the last moment of requests and steps."""
    begin = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    ends = (begin + pl.col("dur_ns").clip(0, FAR_NS).fill_null(0)).clip(-FAR_NS, FAR_NS)
    first, last = trace.steps.select(begin.min().alias("a"), ends.max().alias("b")).collect().row(0)
    known = [each for each in (earliest, latest, first, last) if each is not None]
    return min(known, default=0), max(known, default=0)


def _resource(trace: Trace, zero_ns: int, num_left_out: int) -> dict[str, Value]:
    manifest = trace.manifest
    told = manifest.tables.get("lifecycle", "partial")
    said: dict[str, Value | None] = {
        "service.name": manifest.producer,
        "service.version": manifest.producer_version or None,
        f"{names.PREFIX}trace": trace.name,
        f"{names.PREFIX}scenario": manifest.scenario,
        f"{names.PREFIX}variant": manifest.variant,
        names.CLOCK: manifest.clock.kind,
        names.EPOCH: manifest.clock.epoch_ns,
        names.ZERO: zero_ns,
        names.TOLD: "partial" if told == "complete" and num_left_out else told,
        names.CLOSED: manifest.closed,
    }
    return {name: value for name, value in said.items() if value is not None}


def _identity(trace: Trace, zero_ns: int) -> bytes:
    """The same for the same recording, so that what is sent twice is known to be the same."""
    manifest = trace.manifest
    about: tuple[Any, ...] = (
        manifest.producer, manifest.producer_version, manifest.scenario, manifest.variant,
        manifest.clock.kind, zero_ns, trace.start_ns(), trace.num_rows("lifecycle"),
        trace.num_rows("steps"),
    )  # fmt: skip
    return hashlib.sha256(repr(about).encode("utf-8", "surrogatepass")).digest()
