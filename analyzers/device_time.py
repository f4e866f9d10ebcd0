"""When a rank's device was computing, when it was in a collective, and in which steps it is known.

A device is told of by `core_spans`, or by the kernels among a profile's `spans`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.analyzers.covered import covered, merged
from stepscope.analyzers.occupancy import FAR_NS

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
OF_COLLECTIVES = r"(?i)nccl|rccl"


def computing(trace: Trace) -> pl.LazyFrame:
    """When blocks or kernels were executed that belong to no collective: rank, from_ns, to_ns."""
    began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    blocks = trace.core_spans.select("rank", from_ns=began, to_ns="end_ns")
    is_kernel = pl.col("category").is_in(KERNELS) & ~pl.col("name").str.contains(OF_COLLECTIVES)
    kernels = trace.spans.filter(is_kernel)
    return pl.concat([_never_ended(blocks), _lasting(kernels)])


def collectives(trace: Trace) -> pl.LazyFrame:
    """When the rank was in a collective: rank, from_ns, to_ns."""
    return _lasting(trace.collectives)


def watched(steps: pl.LazyFrame, used: pl.LazyFrame) -> pl.LazyFrame:
    """The steps during which the device did anything: of the others it is not known what it did."""
    times = steps.select("rank", "from_ns", "to_ns")
    return covered(times, merged(used), "used_ns").filter(pl.col("used_ns") > 0)


def _lasting(rows: pl.LazyFrame) -> pl.LazyFrame:
    began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    lasted = pl.col("dur_ns").clip(0, FAR_NS)
    return rows.filter(pl.col("dur_ns").is_not_null()).select(
        "rank", from_ns=began, to_ns=began + lasted
    )


def _never_ended(blocks: pl.LazyFrame) -> pl.LazyFrame:
    ended = pl.col("to_ns").fill_null(FAR_NS).clip(-FAR_NS, FAR_NS)
    return blocks.with_columns(to_ns=ended).filter(pl.col("from_ns").is_not_null())
