"""The collectives of several profiles side by side: one count of them that holds for all ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.collectives.clocks import Apart, Ints
from stepscope.ingest.derive.collectives.inferred import FROM_NUMBERED_CALLS
from stepscope.ingest.derive.collectives.matching import Match, match
from stepscope.ingest.derive.collectives.sequences import UNKNOWN, Sequence, bounds, ends_apart
from stepscope.ingest.derive.collectives.spellings import (
    BLOCKING,
    PAIRWISE,
    TOGETHER,
    UNEVEN,
    kind_of,
)
from stepscope.ingest.derive.step_tags import PROFILER_STEP

_KEY = ("_named", "_group", "_expected")
_NOT_SAID = "nothing says which ranks join them"


@dataclass(frozen=True, slots=True)
class Faced:
    """What became of the collectives of one group that a rank shares with `base`.

    Of numbers that are the group's own, `base_lacks` and `rank_lacks` say how many one of them does
    not have though the other does, between those that both have.
    """

    group: str
    base: int
    rank: int
    num: int
    how: str
    differs: bool = False
    base_lacks: int = 0
    rank_lacks: int = 0

    @property
    def is_known(self) -> bool:
        """Whether any of them are known to be one."""
        return self.num > 0


@dataclass(frozen=True, slots=True)
class Facing:
    """Collectives whose `ordinal` means the same in all ranks, and what their ends say of clocks.

    It is null where it is not known what a collective faces in other ranks.
    """

    collectives: pl.DataFrame
    apart: list[Apart]
    groups: list[Faced]


def facing(collectives: pl.DataFrame, steps: pl.DataFrame, num_ranks: int) -> Facing:
    """Number the inferred collectives of several ranks alike, as far as it is beyond doubt.

    `num_ranks` is the size of the whole job: what names no group and no ranks is matched only
    where there are just two. A group's first rank is what the others are matched with.
    """
    told = _told(collectives, steps)
    ordinals = collectives["ordinal"].fill_null(0).to_numpy().astype(np.int64)
    is_known = collectives["ordinal"].is_not_null().to_numpy().copy()
    apart: list[Apart] = []
    groups: list[Faced] = []
    for (is_named, group, expected), rows in told.group_by(_KEY, maintain_order=True):
        of_ranks = [
            (part["row"].to_numpy(), _sequence(part))
            for part in rows.sort("rank", "place").partition_by("rank", maintain_order=True)
        ]
        can_meet = is_named or expected or num_ranks == 2
        for at, theirs in of_ranks[1:]:
            _, ours = of_ranks[0]
            found = match(ours, theirs) if can_meet else Match(_NOT_SAID)
            groups.append(_faced(str(group), ours, theirs, found))
            if found.is_known:
                apart.append(_apart(ours, theirs, found))
            ordinals[at], is_known[at] = _numbered(theirs, found)
        base_at, ours = of_ranks[0]
        ordinals[base_at], is_known[base_at] = ours.ordinals, True
        if not ours.is_numbered:
            at = np.concatenate([places for places, _ in of_ranks])
            ordinals[at] -= ordinals[at][is_known[at]].min(initial=0)
    numbers = pl.Series("ordinal", ordinals).set(pl.Series(~is_known), None)
    return Facing(collectives.with_columns(numbers), apart, groups)


def _told(collectives: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """What is compared, of what several ranks join: a number for each text, -1 where unknown."""
    tags = steps.drop_nulls(["step", "tag"]).unique(["rank", "step"], keep="none")
    tags = tags.select("rank", "step", "tag", of_steps="inferred")
    kind = kind_of(pl.col("op"))
    is_even = ~pl.col("kind").is_in(UNEVEN).fill_null(value=True)
    expected = collectives["expected_ranks"].fill_null("")
    of_ranks = sorted(expected.unique())
    alone = [ranks for ranks in of_ranks if ranks.isascii() and ranks.isdigit()]
    return (
        collectives.with_row_index("row")
        .with_columns(
            kind=kind, _named=pl.col("group").is_not_null(),
            _group=pl.coalesce("group", "stream", pl.lit("")),
            _expected=expected.cast(pl.Enum(of_ranks)),  # many ranks are a long text in each row
        )
        .drop("expected_ranks")
        .filter(
            ~pl.col("kind").is_in(PAIRWISE).fill_null(value=False),
            ~pl.col("_expected").is_in(alone),
        )
        .join(tags, on=["rank", "step"], how="left")
        .with_columns(
            _code("kind"), _code("dtype"),
            pl.when(is_even).then(pl.col("num_elements").fill_null(-1)).otherwise(0).alias("size_code"),
            tag_code=pl.col("tag").rank("dense").fill_null(0),
            end_ns=pl.col("ts_ns") + pl.col("dur_ns"),
            is_blocking=pl.col("kind").is_in([*BLOCKING]).fill_null(value=False),
            is_together=pl.col("kind").is_in([*TOGETHER]).fill_null(value=False),
            is_numbered=pl.col("inferred") == FROM_NUMBERED_CALLS,
        )
        .sort("row")
        .with_columns(place=_place())
    )  # fmt: skip


def _place() -> pl.Expr:
    """The group's own number where it has one, else a count of what the rank issued."""
    own = ["rank", *_KEY]
    is_numbered = pl.col("is_numbered").all().over(own) & pl.col("ordinal").is_not_null()
    counted = pl.int_range(pl.len(), dtype=pl.Int64).over(own)
    return pl.when(is_numbered).then("ordinal").otherwise(counted)


def _code(name: str) -> pl.Expr:
    return pl.col(name).rank("dense").cast(pl.Int64).fill_null(-1).alias(f"{name}_code")


def _sequence(rows: pl.DataFrame) -> Sequence:
    """The collectives of one group and rank, in order."""
    codes = rows.select(pl.col("kind_code", "dtype_code", "size_code").cast(pl.Int64)).to_numpy()
    ended = rows["end_ns"].is_not_null()
    is_even = rows["kind"].ne_missing("alltoall")
    return Sequence(
        rows["rank"][0],
        rows["place"].to_numpy(),
        bool(rows["is_numbered"].all()),
        bool((rows["of_steps"] == PROFILER_STEP).any()),
        codes,
        rows["step"].fill_null(-1).to_numpy(),
        rows["tag_code"].cast(pl.Int64).to_numpy(),
        rows["ts_ns"].to_numpy(),
        rows["end_ns"].fill_null(UNKNOWN).to_numpy(),
        (rows["is_blocking"] & ended & is_even).to_numpy(),
        (rows["is_together"] & ended).to_numpy(),
    )


def _faced(group: str, ours: Sequence, theirs: Sequence, found: Match) -> Faced:
    lacking = (_lacking(ours, theirs), _lacking(theirs, ours)) if found.is_known else (0, 0)
    ranks = (ours.rank, theirs.rank)
    return Faced(group, *ranks, len(found.theirs), found.how, found.differs, *lacking)


def _lacking(one: Sequence, other: Sequence) -> int:
    """How many numbers one lacks that the other has, between those that both have."""
    both = np.intersect1d(one.ordinals, other.ordinals)
    if not (one.is_numbered and other.is_numbered and len(both)):
        return 0
    within = other.ordinals[(other.ordinals > both[0]) & (other.ordinals < both[-1])]
    return len(np.setdiff1d(within, one.ordinals))


def _apart(ours: Sequence, theirs: Sequence, found: Match) -> Apart:
    least, most = bounds(ours, theirs, found.ours, found.theirs)
    ends = ends_apart(ours, theirs, found.ours, found.theirs)
    unless = found.unless_apart_ns
    return Apart(ours.rank, theirs.rank, ends, least, most, found.how, unless)


def _numbered(theirs: Sequence, found: Match) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The ordinals of a rank by those of the group's first, and which of them are known.

    The first that differs is: it shows where ranks diverge.
    """
    places = np.arange(len(theirs))
    if theirs.is_numbered and found.is_known:
        return theirs.ordinals, places >= 0
    is_known = (found.since <= places) & (places < found.until)
    return places + found.shift, is_known & found.is_known
