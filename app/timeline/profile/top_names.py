"""Which names took most of a profile: they have a colour each, all others one together."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.profile.short_names import short_name


@dataclass(frozen=True, slots=True)
class TopName:
    """A name with a colour of its own: `ns` is the sum of its spans, `share` that of all of them.

    `state` is one of palette.NAMED, or palette.OTHER_NAME for all that have none.
    """

    state: int
    name: str
    ns: int
    share: float


def top_names(executed: pl.DataFrame) -> tuple[TopName, ...]:
    """The names that took most, and one entry for the rest; by time, then by name.

    `executed` has name and dur_ns of each span; no order of rows, and no hash, counts.
    """
    sums = executed.group_by("name").agg(
        pl.col("dur_ns").fill_null(0).clip(0).cast(pl.Int128).sum()
    )
    by_short: dict[str, int] = {}
    for name, ns in sums.iter_rows():
        short = shown(name)
        by_short[short] = by_short.get(short, 0) + int(ns)
    ranked = sorted(by_short.items(), key=lambda each: (-each[1], each[0]))
    whole = sum(by_short.values()) or 1
    top = [
        TopName(state, name, ns, ns / whole)
        for state, (name, ns) in zip(palette.NAMED, ranked, strict=False)
    ]
    rest = sum(ns for _, ns in ranked[len(top) :])
    others = [TopName(palette.OTHER_NAME, "other names", rest, rest / whole)]
    return (*top, *(others if len(ranked) > len(top) else []))


def state_by_name(names: list[str | None], top: tuple[TopName, ...]) -> dict[str | None, int]:
    """The state in which spans of each name are shown."""
    states = {each.name: each.state for each in top if each.state != palette.OTHER_NAME}
    return {name: states.get(shown(name), palette.OTHER_NAME) for name in names}


def shown(name: str | None) -> str:
    """What a kernel is called on a lane."""
    return plain(short_name(name)) if name else "unnamed"
