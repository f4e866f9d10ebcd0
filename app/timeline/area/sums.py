"""What an area adds up to: by lane, by name, by state, and by lane and name.

A span counts by its part inside. Who holds a core does nothing yet: such time stands apart, and is
in no count, mean or percentile of a name. A lane is idle where it neither works nor is held: who
waits is idle there, and has a state of its own. A lane with sub-lanes is busy once where several
spans lie over each other, and each of them counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.app.palette import HELD, NOT_BUSY
from stepscope.app.timeline.area.cut_spans import Area, spans_in
from stepscope.app.timeline.area.selection import MOST_LETTERS, Pick
from stepscope.app.timeline.area.span_names import AreaNames, SpanNames
from stepscope.app.timeline.lanes.lane import Ints
from stepscope.app.timeline.span_index import Section
from stepscope.ingest.quantiles import quantile_expr

PERCENTILES = (50, 90, 99)
LENGTHS = ("ns", "mean_ns", *(f"p{each}_ns" for each in PERCENTILES), "max_ns")
IS_HELD = pl.col("kind") == HELD
IS_BUSY = ~pl.col("kind").is_in(NOT_BUSY)


@dataclass(frozen=True)
class AreaSums:
    """The sums of an area; `heads` gives of each lane the first of those that are one with it."""

    area: Area
    spans: pl.DataFrame
    names: SpanNames | AreaNames
    heads: Sequence[int]

    @cached_property
    def num_spans(self) -> int:
        """How many spans touch the area, without the time for which a core was held."""
        return int((self.spans["kind"] != HELD).sum())

    @cached_property
    def num_cut(self) -> int:
        """How many of those go on outside."""
        return len(self.spans.filter("is_cut", ~IS_HELD))

    @cached_property
    def by_name(self) -> pl.DataFrame:
        """A row for each name, what took most first: `name`, `num_spans`, LENGTHS, `held_ns`."""
        return self._measured("name", self.spans, held=True)

    @cached_property
    def by_state(self) -> pl.DataFrame:
        """A row for each state, what took most first: `state`, `num_spans`, LENGTHS."""
        return self._measured("state", self.spans, held=False)

    @cached_property
    def by_lane(self) -> pl.DataFrame:
        """A row for each lane in order: `lane`, `num_spans`, `busy_ns`, `held_ns`, `idle_ns`, `ns`.

        `ns` is the sum of its spans, which lie over each other on a lane with sub-lanes.
        """
        spans = self._headed
        whole = pl.lit(self.area.ns, pl.Int64)
        lanes = pl.DataFrame(
            {"lane": sorted({self.heads[lane] for lane in self.area.lanes})},
            schema={"lane": pl.Int32},
        )
        summed = spans.group_by("lane").agg(
            num_spans=(~IS_HELD).sum(), ns=_sum("ns", ~IS_HELD), held_ns=_sum("ns", IS_HELD)
        )
        busy = _covered(spans.filter(IS_BUSY)).rename({"ns": "busy_ns"})
        taken = _covered(spans.filter(IS_BUSY | IS_HELD)).rename({"ns": "taken_ns"})
        return (
            lanes.join(summed, on="lane", how="left")
            .join(busy, on="lane", how="left")
            .join(taken, on="lane", how="left")
            .with_columns(pl.exclude("lane").fill_null(0))
            .with_columns(idle_ns=whole - pl.col("taken_ns"))
            .select(
                "lane", "num_spans", "busy_ns", "held_ns", "idle_ns", "ns",
                busy_share=pl.col("busy_ns") / self.area.ns,
            )
            .sort("lane")
        )  # fmt: skip

    @cached_property
    def by_lane_and_name(self) -> pl.DataFrame:
        """A row for each lane and name that meet: `lane`, `name`, `num_spans`, `ns`."""
        found = self._headed.filter(~IS_HELD).group_by("lane", "name")
        return self._texts(
            found.agg(num_spans=pl.len(), ns=_sum("ns")).sort("lane", "name"), "name"
        )

    def pivot(self, most: int) -> tuple[list[str], pl.DataFrame, Ints]:
        """The names that took most, the lanes (as `by_lane`), and ns of each name on each lane.

        The last name stands for all but the first `most`, where there are more.
        """
        order, lanes = self.by_name["name"].to_list(), self.by_lane
        names = order[:most] + ([OTHERS] if len(order) > most else [])
        column = {name: min(at, most) for at, name in enumerate(order)}
        told = self.by_lane_and_name
        row = np.searchsorted(lanes["lane"].to_numpy(), told["lane"].to_numpy())
        at = np.array([column[name] for name in told["name"]], np.int64)
        ns = np.zeros((len(lanes), len(names)), np.int64)
        np.add.at(ns, (row, at), told["ns"].to_numpy())
        return names, lanes, ns

    def picked(self, by: str, text: str) -> pl.DataFrame:
        """The spans of a row, by lane and time: of a `name`, a `state`, a `lane` by its number."""
        if by == "lane":
            lane = whole_number(text)
            return self.spans.filter(self._headed["lane"] == (-1 if lane is None else lane))
        texts = self.names.names.texts if by == "name" else self.names.states.texts
        alike = [at for at, each in enumerate(texts) if each[:MOST_LETTERS] == text]
        if by not in ("name", "state") or not alike:
            return self.spans.clear()
        is_it = pl.col(by).is_in(alike)
        return self.spans.filter(is_it & ~IS_HELD if by == "name" else is_it)

    def first_of(self, pick: Pick) -> Iterator[tuple[int, int]]:
        """The lane and the time in the area of the first span of a row, if it has any."""
        first = self.picked(pick.by, pick.text).sort("start", "lane").head(1)
        yield from first.select("lane", "start").iter_rows()

    @cached_property
    def _headed(self) -> pl.DataFrame:
        """The spans under the first lane of those that are one with theirs."""
        heads = np.asarray(self.heads, np.int32)
        lane = heads[self.spans["lane"].to_numpy()] if len(self.spans) else np.zeros(0, np.int32)
        return self.spans.with_columns(lane=pl.Series(lane, dtype=pl.Int32))

    def _measured(self, key: str, spans: pl.DataFrame, *, held: bool) -> pl.DataFrame:
        own = ~IS_HELD if held else pl.lit(value=True)
        ns = pl.col("ns").filter(own)
        held_ns = {"held_ns": _sum("ns", IS_HELD)} if held else {}
        found = spans.group_by(key).agg(
            num_spans=own.sum() if held else pl.len(),
            ns=_sum("ns", own),
            mean_ns=ns.mean(),
            **{f"p{each}_ns": quantile_expr(ns, each / 100) for each in PERCENTILES},
            max_ns=ns.max(),
            **held_ns,
        )
        told = self._texts(found, key)
        return told.sort(["ns", key], descending=[True, False])

    def _texts(self, frame: pl.DataFrame, key: str) -> pl.DataFrame:
        texts = (self.names.names if key == "name" else self.names.states).texts
        return frame.with_columns(pl.Series(texts, dtype=pl.String).gather(frame[key]).alias(key))


OTHERS = "other names"


def sums_of(
    area: Area, sections: Sequence[Section], names: SpanNames, heads: Sequence[int]
) -> AreaSums:
    """Add up an area of a timeline."""
    return AreaSums(area, spans_in(area, sections, names), names, heads)


def _sum(column: str, where: pl.Expr | None = None) -> pl.Expr:
    """A sum that no absurd times overflow; as a column of Int64 where it fits one."""
    value = pl.col(column) if where is None else pl.col(column).filter(where)
    return value.cast(pl.Int128).sum().clip(0, 2**63 - 1).cast(pl.Int64)


def _covered(spans: pl.DataFrame) -> pl.DataFrame:
    """How long any of the spans of each lane lies over it."""
    end = pl.col("start") + pl.col("ns")
    reached = end.cum_max().shift(1).over("lane")
    fresh = pl.col("start") + pl.col("ns") - pl.max_horizontal("start", "reached")
    return (
        spans.select("lane", "start", "ns")
        .sort("lane", "start")
        .with_columns(reached=reached)
        .with_columns(fresh=fresh.clip(0))
        .group_by("lane")
        .agg(ns=pl.col("fresh").sum())
    )
