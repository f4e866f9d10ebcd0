"""What a timeline file shows of a trace, whatever the format: slices, counters and arrows."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl

from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.errors import WriteError
from stepscope.ingest.times import FAR_NS, US
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.engine_slices import FIELDS, engine_counters, engine_slices

SEPARATOR = " / "
FLOW_ENDS = ("start", "step", "finish")
CHUNK_ROWS = 16 << 10
_NOWHERE = "global"
_SHOWN_FIRST = (
    "engine / steps", "engine / segments", "engine / decisions", "slots / ", "waiting queue / ",
    "requests / ",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """Frames of a trace, on its clock until they are moved; absurd times are cut to `FAR_NS`.

    slices    those of the spans and those made of an engine's tables, in lanes (`with_lanes`) and
              sorted by track and time; `step` and `correlation` only where a span has them
    counters  with a unit, where one is known
    flows     ends of arrows; name and category those of the arrow's first end that has them
    """

    slices: pl.DataFrame
    counters: pl.DataFrame
    flows: pl.DataFrame

    @classmethod
    def of(cls, trace: Trace, track: pl.Expr) -> Shown:
        """Collect it; `track` names a row's track in the file, of its `rank` and `track`."""
        return cls(_slices(trace, track), _counters(trace, track), _flows(trace, track))

    def times(self) -> pl.Series:
        """Every time at which something begins."""
        return pl.concat([frame["ts_ns"] for frame in (self.slices, self.counters, self.flows)])

    def moved(self, zero_ns: int) -> Shown:
        """The same on a clock whose zero is `zero_ns` of the trace's."""
        later = pl.col("ts_ns") - zero_ns
        frames = (self.slices, self.counters, self.flows)
        return Shown(*(frame.with_columns(later) for frame in frames)) if zero_ns else self


def _slices(trace: Trace, track: pl.Expr) -> pl.DataFrame:
    """All slices and instants by track and time, outer before inner.

    A slice without duration lies within one of its time, not around it.
    """
    spans = trace.spans.select(*FIELDS, "step", "correlation").collect()
    form = pl.when(pl.col("dur_ns").is_null()).then(pl.lit("instant")).otherwise(pl.lit("slice"))
    complete = (
        pl.concat([*engine_slices(trace), spans], how="diagonal")
        .drop_nulls("ts_ns")
        .with_columns(
            pl.col("track").fill_null(_NOWHERE),
            pl.col("name").fill_null(""),
            pl.col("form").fill_null(form),
            _within_times(),
            pl.col("dur_ns").clip(0, FAR_NS),
        )
    )
    longest_first = complete.sort("dur_ns", descending=True, nulls_last=False, maintain_order=True)
    laned = with_lanes(longest_first.with_columns(track))
    return laned.sort("track", "ts_ns", pl.col("form") == "instant", maintain_order=True)


def _counters(trace: Trace, track: pl.Expr) -> pl.DataFrame:
    sampled = trace.counters.select("rank", "ts_ns", "track", "name", "unit", "value").collect()
    counted = pl.concat([engine_counters(trace), sampled], how="diagonal")
    return counted.drop_nulls(["ts_ns", "value"]).with_columns(track, _within_times())


def _flows(trace: Trace, track: pl.Expr) -> pl.DataFrame:
    ends = trace.flows.filter(pl.col("end").is_in(FLOW_ENDS)).drop_nulls(["ts_ns", "flow"])
    of_flow = [
        pl.col(name).fill_null(pl.col(name).drop_nulls().first().over("rank", "flow"))
        for name in ("name", "category")
    ]
    return ends.with_columns(of_flow).with_columns(track, _within_times()).collect()


def _within_times() -> pl.Expr:
    """Times cut to what is a time, less a whole microsecond, so that differences are times, too."""
    return pl.col("ts_ns").clip(US - FAR_NS, FAR_NS - US)


def in_order(slices: pl.DataFrame) -> pl.DataFrame:
    """Begins and ends of slices, and instants, in an order in which brackets match.

    Takes slices in lanes; gives a row per `half`: "begin", "instant" or "end", with the columns
    of its slice and `ts_ns` when that happens. At one time slices end, inner before outer; then
    others begin, outer before inner; those without duration end last.
    """
    row = pl.int_range(pl.len(), dtype=pl.Int64)
    is_instant = pl.col("form") == "instant"
    begins = slices.with_columns(
        half=pl.when(is_instant).then(pl.lit("instant")).otherwise(pl.lit("begin")),
        _turn=pl.lit(1, pl.Int8),
        _place=row,
    )
    ends = slices.with_columns(_place=-row).filter(~is_instant, pl.col("dur_ns").is_not_null())
    ended = ends.with_columns(
        pl.col("ts_ns") + pl.col("dur_ns").clip(lower_bound=0),
        half=pl.lit("end"),
        _turn=pl.when(pl.col("dur_ns") > 0).then(0).otherwise(2).cast(pl.Int8),
    )
    halves = pl.concat([begins, ended], how="diagonal")
    return halves.sort("ts_ns", "_turn", "_place").drop("_turn", "_place")


def rows(frame: pl.DataFrame, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a frame, made a chunk at a time."""
    for chunk in frame.select(columns).iter_slices(CHUNK_ROWS):
        yield from chunk.iter_rows()


def order(name: str) -> tuple[int, str, str]:
    """Steps first, then requests, then the rest; "core 10" after "core 9"."""
    place = next((n for n, text in enumerate(_SHOWN_FIRST) if text in name), len(_SHOWN_FIRST))
    return place, re.sub(r"\d+", lambda digits: digits.group().zfill(20), name), name


@contextmanager
def draft(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file that takes its name once it is whole, gzipped where its name ends in `.gz`.

    Raises `WriteError` when it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        with unfinished.open("wb") as file:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    yield packed
            else:
                yield file
        unfinished.replace(path)
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror}", where=str(path)) from error
    finally:
        with suppress(OSError):  # the name is too long, or the folder is gone
            unfinished.unlink()
