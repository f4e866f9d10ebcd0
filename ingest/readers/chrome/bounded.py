"""Events as columns, within the limits: long texts, deep arguments, tracks without number."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.chrome.frames import NUMBERS, Events

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKETS = bytes(1 if c in b"[{" else 255 if c in b"]}" else 0 for c in range(256))


def within(events: Events, limits: Limits) -> tuple[Events, dict[str, int]]:
    """Cut texts that are beyond the limits; gives how many events of which kind that was.

    Names are cut short, arguments left out.
    """
    repaired: dict[str, int] = {}
    templates, rows = events.templates, events.rows
    for name, longest in _longest(templates, "name", "cat").items():
        if longest > limits.text:
            is_long = _is_long(templates[name], limits)
            templates = _replaced(
                templates, [name], is_long, pl.col(name).str.head(limits.text // 4)
            )
            what = f"a {name} of more than {limits.text:,} bytes cut ({raised_by('text')})"
            repaired[what] = _num(is_long.gather(rows["template"]))
    longest = _longest(rows, "args")["args"]
    if longest > limits.text and (num := _num(is_long := _is_long(rows["args"], limits))):
        rows = _replaced(rows, ("args", *NUMBERS), is_long)
        repaired[f"args of more than {limits.text:,} bytes left out ({raised_by('text')})"] = num
    # A bracket opens and closes, so that the length tells most of them apart.
    if longest > 2 * limits.depth and (
        num := _num(is_deep := _is_deep(rows["args"], limits.depth))
    ):
        rows = _replaced(rows, ("args", *NUMBERS), is_deep)
        repaired[f"args deeper than {limits.depth:,} left out ({raised_by('depth')})"] = num
    return Events(templates, rows), repaired


def _longest(rows: pl.DataFrame, *texts: str) -> dict[str, int]:
    """The size of the longest text of each column in bytes."""
    sizes = rows.select(pl.col(texts).str.len_bytes().max().fill_null(0))
    return sizes.row(0, named=True)


def on_few_tracks(templates: pl.DataFrame, most: int) -> tuple[pl.DataFrame, pl.Series]:
    """Forms of which those on one track too many are on none, and which these are.

    Names of tracks may be of any.
    """
    places = templates.select("pid", "tid", is_name=pl.col("ph") == "M")
    known = places.filter(~pl.col("is_name")).select("pid", "tid").unique(maintain_order=True)
    stray = known.slice(most).with_columns(is_stray=True)
    found = places.join(
        stray, on=["pid", "tid"], how="left", nulls_equal=True, maintain_order="left"
    )
    is_stray = found.select(pl.col("is_stray").fill_null(value=False) & ~pl.col("is_name"))
    for name in ("pid", "tid"):
        templates = _replaced(templates, [name], is_stray.to_series())
    return templates, is_stray.to_series()


def depth_of(text: bytes) -> int:
    """How many brackets stand open at most, outside of strings."""
    steps = np.frombuffer(_STRING.sub(b"", text).translate(_BRACKETS), np.int8)
    return int(steps.cumsum(dtype=np.int64).max(initial=0))


def _num(which: pl.Series) -> int:
    return int(which.sum())


def _replaced(
    rows: pl.DataFrame, columns: Sequence[str], where: pl.Series, by: pl.Expr | None = None
) -> pl.DataFrame:
    return rows.with_columns(pl.when(~where).then(pl.col(columns)).otherwise(by).name.keep())


def _is_long(text: pl.Series, limits: Limits) -> pl.Series:
    return (text.str.len_bytes() > limits.text).fill_null(value=False)


def _is_deep(args: pl.Series, depth: int) -> pl.Series:
    """Whether arguments nest deeper; few have as many brackets, and only these are counted."""
    doubtful = (args.str.len_bytes() > 2 * depth).fill_null(value=False).arg_true()
    texts = args.gather(doubtful)
    num_open = texts.str.count_matches("{", literal=True) + texts.str.count_matches(
        "[", literal=True
    )
    doubtful = doubtful.filter(num_open > depth)
    deep = [row for row in doubtful.to_list() if depth_of(args[row].encode()) > depth]
    return (
        pl.Series(args.name, [False], pl.Boolean).new_from_index(0, len(args)).scatter(deep, True)
    )
