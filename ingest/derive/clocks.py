"""How far the clocks of ranks are apart, by the ends of collectives that ranks leave together."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

LEAST_COLLECTIVES = 3
LARGEST_RESIDUAL_NS = 1_000_000
"""Ends that are scattered more than this say nothing of the clocks."""
# Nobody leaves these before all have entered, and all get the last of the data at one time.
_TOGETHER = r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier"
_KEY = ("place", "op", "ordinal")


@dataclass(frozen=True, slots=True)
class Offset:
    """How much later a rank saw `num` collectives end than the reference, and how scattered.

    Both are medians, of the differences and of how far these are from `offset_ns`.
    """

    rank: int
    num: int
    offset_ns: int = 0
    residual_ns: int = 0

    @property
    def is_known(self) -> bool:
        """Whether the ends say how far the clocks are apart."""
        return self.num >= LEAST_COLLECTIVES and self.residual_ns <= LARGEST_RESIDUAL_NS

    @property
    def correction_ns(self) -> int:
        """What to add to the rank's times: nothing where the ends don't tell, or agree."""
        return -self.offset_ns if self.is_known and abs(self.offset_ns) > self.residual_ns else 0


def clock_offsets(collectives: pl.DataFrame, reference: int, ranks: list[int]) -> list[Offset]:
    """The offset of each rank's clock from that of rank `reference`.

    Collectives are matched by group (stream where it is unknown), operation and ordinal.
    """
    ends = collectives.filter(pl.col("op").str.contains(_TOGETHER)).select(
        "rank",
        "op",
        "ordinal",
        place=pl.coalesce("group", "stream").fill_null(""),
        end_ns=pl.col("ts_ns") + pl.col("dur_ns"),
    )
    once = ends.drop_nulls("end_ns").unique(["rank", *_KEY], keep="first", maintain_order=True)
    ours = once.filter(pl.col("rank") == reference).drop("rank")
    apart = once.join(ours, on=_KEY).select(
        "rank", apart_ns=pl.col("end_ns") - pl.col("end_ns_right")
    )
    return [_offset(rank, apart.filter(pl.col("rank") == rank)["apart_ns"]) for rank in ranks]


def _offset(rank: int, apart_ns: pl.Series) -> Offset:
    if apart_ns.is_empty():
        return Offset(rank, 0)
    middle = apart_ns.sort()[len(apart_ns) // 2]
    scattered = (apart_ns - middle).abs().sort()[len(apart_ns) // 2]
    return Offset(rank, len(apart_ns), int(middle), int(scattered))
