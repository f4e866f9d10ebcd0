"""How a writer lays an event out: where its numbers and args stand, learned from one event.

Events of one layout are cut at the same few texts, whatever stands between these. Nothing here is
taken for granted: what is cut out is proved by `event_forms`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

SLOTS = ("ts", "dur", "id", "args")
_MARK = re.compile(r'"(ts|dur|id|args)"\s*:\s*')
_VALUE = re.compile(r"[^,{}\[\]\s]+")
_END = re.compile(r"\s*,")


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that differs from event to event: its key, what it stands between, and what it is.

    `before` ends where the value begins. It holds all that is between two values where this is no
    more than a key; else the value before ends with its own `behind`.
    """

    key: str
    before: str
    behind: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The slots of an event in their order; `tail` is what ends it where its last value does."""

    slots: tuple[Slot, ...]
    tail: str

    @property
    def keys(self) -> list[str]:
        """The keys of the slots."""
        return [slot.key for slot in self.slots]

    def parts(self) -> list[str]:
        """Columns of `cut` that hold what stands around the values, and differs."""
        return [f"part_{number}" for number in range(len(self.slots) + 1) if self._differs(number)]

    def _differs(self, number: int) -> bool:
        return number == 0 or self.slots[number - 1].behind is not None

    def with_values(self, parts: tuple[str, ...], values: dict[str, str]) -> str:
        """The text of an event that has these parts and these values."""
        given = iter(parts)
        text = next(given)
        for number, slot in enumerate(self.slots, 1):
            text += values[slot.key]
            if self._differs(number):
                text += next(given)
            else:
                text += self.slots[number].before if number < len(self.slots) else self.tail
        return text


def layout_of(event: str) -> Layout | None:
    """Learn the layout of an event from its text behind its first key; None where it has none."""
    marks = list(_until_args(event))
    if not marks or len({mark[1] for mark in marks}) < len(marks):
        return None
    slots: list[Slot] = []
    value_end = 0
    for mark in marks:
        gap = event[value_end : mark.end()]
        is_key_only = bool(slots) and gap.count('"') == 2
        if slots and not is_key_only:
            slots[-1] = _ended(slots[-1], gap)
        slots.append(Slot(mark[1], gap if is_key_only else mark[0]))
        value = _VALUE.match(event, mark.end())
        if value is None and mark[1] != "args":
            return None
        value_end = value.end() if value else mark.end()
    tail = event[value_end:]
    if marks[-1][1] == "args":
        return Layout(tuple(slots), "")
    if '"' in tail:
        slots[-1] = _ended(slots[-1], tail)
    return Layout(tuple(slots), tail)


def _until_args(event: str) -> Iterator[re.Match[str]]:
    for mark in _MARK.finditer(event):
        yield mark
        if mark[1] == "args":
            return


def _ended(slot: Slot, gap: str) -> Slot:
    end = _END.match(gap)
    return Slot(slot.key, slot.before, end[0] if end else gap)


def cut(events: pl.DataFrame, layout: Layout) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cut events (number, text) of that layout, and give those that are not of it as they are.

    Gives number, the slots' values as text by key, and `Layout.parts`.
    """
    starts = [_found(slot.before) for slot in layout.slots]
    begun, rest = _parted(
        events.with_columns(at.alias(f"start_{number}") for number, at in enumerate(starts)),
        [pl.col(f"start_{number}") for number in range(len(starts))],
    )
    bounds = [pl.col(f"{bound}_{number}") for number in range(len(starts)) for bound in _BOUNDS]
    placed, others = _parted(begun.with_columns(_ends(layout)), bounds, _has_tail(layout))
    rest = pl.concat([rest, others]) if len(others) else rest
    return placed.select("number", *_values(layout), *_parts(layout)), rest


def _parted(
    events: pl.DataFrame, bounds: list[pl.Expr], *conditions: pl.Expr
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events that have bounds, and these in their order, and the number and text of all others."""
    in_order = [earlier <= later for earlier, later in pairwise(bounds)]
    has_all = [bound.is_not_null() for bound in bounds]
    fits = events.select(pl.all_horizontal(*has_all, *in_order, *conditions)).to_series()
    fits = fits.fill_null(value=False)
    rest = events.select("number", "text")
    if fits.all():
        return events, rest.clear()
    return events.filter(fits), rest.filter(~fits)


_BOUNDS = ("start", "end")


def _found(text: str) -> pl.Expr:
    """Where what follows a text begins, in bytes."""
    return pl.col("text").str.find(text, literal=True).cast(pl.Int64) + len(text.encode())


def _size() -> pl.Expr:
    return pl.col("text").str.len_bytes().cast(pl.Int64)


def _slice(start: pl.Expr, end: pl.Expr | None = None) -> pl.Expr:
    """A part of the text by bytes; its borders are those of literals that were found."""
    size = None if end is None else end - start
    return pl.col("text").cast(pl.Binary).bin.slice(start, size).cast(pl.String)


def _ends(layout: Layout) -> Iterator[pl.Expr]:
    for number, slot in enumerate(layout.slots):
        start = pl.col(f"start_{number}")
        if slot.behind is not None:
            length = _slice(start).str.find(slot.behind, literal=True).cast(pl.Int64)
            end = start + length
        elif number + 1 < len(layout.slots):
            before = layout.slots[number + 1].before
            end = pl.col(f"start_{number + 1}") - len(before.encode())
        else:
            end = _size() - len(layout.tail.encode())
        yield end.alias(f"end_{number}")


def _has_tail(layout: Layout) -> pl.Expr:
    if layout.slots[-1].behind is not None or not layout.tail:
        return pl.lit(value=True)
    return pl.col("text").str.ends_with(layout.tail)


def _values(layout: Layout) -> Iterator[pl.Expr]:
    for number, slot in enumerate(layout.slots):
        end = None if slot.key == "args" else pl.col(f"end_{number}")
        yield _slice(pl.col(f"start_{number}"), end).alias(slot.key)


def _parts(layout: Layout) -> Iterator[pl.Expr]:
    for name in layout.parts():
        number = int(name.removeprefix("part_"))
        begin = pl.col(f"end_{number - 1}") if number else pl.lit(0, pl.Int64)
        last = number == len(layout.slots)
        yield _slice(begin, None if last else pl.col(f"start_{number}")).alias(name)
