"""When the cores of a rank computed, when it was in a collective, and in which steps it is known.

A GPU, of which the kernels among a profile's `spans` tell, is another thing: see `gpu_time`.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.interval_union import covered, merged
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace


def computing(trace: Trace) -> pl.LazyFrame:
    """When blocks were executed on cores: rank, from_ns, to_ns."""
    began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    ended = pl.col("end_ns").fill_null(FAR_NS).clip(-FAR_NS, FAR_NS)
    blocks = trace.core_spans.select("rank", from_ns=began, to_ns=ended)
    return blocks.filter(pl.col("from_ns").is_not_null())


def collectives(trace: Trace) -> pl.LazyFrame:
    """When the rank was in a collective: rank, from_ns, to_ns."""
    began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    lasted = pl.col("dur_ns").clip(0, FAR_NS)
    ended = trace.collectives.filter(pl.col("dur_ns").is_not_null())
    return ended.select("rank", from_ns=began, to_ns=began + lasted)


def watched(steps: pl.LazyFrame, used: pl.LazyFrame) -> pl.LazyFrame:
    """The steps during which the device did anything: of the others it is not known what it did."""
    times = steps.select("rank", "from_ns", "to_ns")
    return covered(times, merged(used), "used_ns").filter(pl.col("used_ns") > 0)
