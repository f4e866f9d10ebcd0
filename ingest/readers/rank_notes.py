"""What is said of the ranks of a folder: their clocks, and which collectives are one."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.ingest.derive.collectives.clocks import Offset
from stepscope.ingest.derive.collectives.facing import Faced

MOST_NOTES = 64


def said_of_clocks(offsets: list[Offset]) -> Iterator[str]:
    """What became of the clocks; those of which nothing is known in one sentence."""
    compared = [offset for offset in offsets if offset.num]
    yield from (_said(offset) for offset in compared[:MOST_NOTES])
    if alone := sorted(offset.rank for offset in offsets if not offset.num):
        clock, it = ("clock", "it leaves") if len(alone) == 1 else ("clocks", "they leave")
        are = "is" if len(alone) == 1 else "are"
        yield (
            f"{clock} of {ranks_told(alone)} {are} not compared: no collective that {it} together "
            "with another rank is known"
        )


def said_of_groups(groups: list[Faced]) -> Iterator[str]:
    """Which collectives are not numbered alike, and why, and which are not there."""
    yield from _lacking(groups)
    doubtful = [each for each in groups if not each.is_known or each.differs]
    for each in doubtful[:MOST_NOTES]:
        what = f"collectives of {each.group or 'a group without a name'}"
        who = f"ranks {each.base} and {each.rank}"
        if each.is_known:
            yield f"{what} are paired by {each.how}: {who} part behind {each.num:,} of them"
        else:
            yield f"{what} are not paired between {who}: {each.how}"


def _lacking(groups: list[Faced]) -> Iterator[str]:
    told = [
        (who, other, num, each.group)
        for each in groups
        for who, other, num in (
            (each.base, each.rank, each.base_lacks), (each.rank, each.base, each.rank_lacks)
        )
        if num
    ]  # fmt: skip
    for who, other, num, group in told[:MOST_NOTES]:
        what = f"{num:,} {'collective' if num == 1 else 'collectives'} of {group}"
        yield f"rank {who} lacks {what} that rank {other} has among those that both have"


def compared(offset: Offset, *, is_dated: bool) -> dict[str, int | str | bool | None]:
    """What is known of a rank's clock, for whoever has to know how sure it is."""
    return {
        "collectives": offset.num,
        "offset_ns": offset.offset_ns,
        "residual_ns": offset.residual_ns,
        "least_ns": offset.least_ns,
        "most_ns": offset.most_ns,
        "moved_ns": offset.correction_ns,
        "compared_with": offset.base,
        "paired_by": offset.how or None,
        "unless_apart_ns": offset.unless_apart_ns,
        "why_not": offset.why_not or None,
        "is_dated": is_dated,
    }


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f} ms or more"


def ranks_told(ranks: list[int]) -> str:
    """`rank 3`, `ranks 1, 2, 5`; many are cut short."""
    shown = ", ".join(map(str, sorted(ranks)[:MOST_NOTES]))
    more = ", ..." if len(ranks) > MOST_NOTES else ""
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}{more}"


def _said(offset: Offset) -> str:
    """What became of a rank's clock, with how far the ends of collectives are still apart."""
    apart, residual = f"{offset.offset_ns / 1e6:+.3f} ms", f"{offset.residual_ns / 1e6:.3f} ms"
    clock, ends = f"clock of rank {offset.rank}", f"the ends of {offset.num:,} collectives"
    other = f"rank {offset.base}'s"
    if not offset.is_known:
        return f"{clock} is left as it is: {offset.why_not}"
    if not offset.correction_ns:
        agrees = f"{clock} agrees with {other}: {ends} are {apart} apart, within {residual}"
        unless = offset.unless_apart_ns
        return agrees if unless is None else f"{agrees}, unless clocks are {_ms(unless)} apart"
    moved = f"{offset.correction_ns / 1e6:+.3f} ms"
    return f"{clock} is moved by {moved}: {ends} then agree with {other} within {residual}"
