"""Events as frames: templates, which many events share, and a row for each event.

But for its times, its id and its args an event says what thousands of others say: its template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.ingest.readers.args_numbers import CORRELATION, EXTERNAL_ID, number_in
from stepscope.ingest.readers.chrome.event import Event
from stepscope.ingest.readers.chrome.flows import with_flows
from stepscope.ingest.readers.chrome.times import EMPTY, nanoseconds

_TEXTS = ("ph", "name", "cat")
_RAWS = ("pid", "tid", "ts", "dur", "id", "id2", "args")
TEMPLATE = ("ph", "name", "cat", "pid", "tid")
NUMBERS = ("correlation", "external_id")
_LINE_BREAK = r"[\r\n]\s*"


@dataclass(frozen=True, slots=True)
class Events:
    """Some events of a file in its order.

    templates   ph, name, cat       text
                pid, tid            text without its quotes; null when missing, null or empty
    rows        template            which of `templates`; they are in the order in which they are
                                    first met
                ts_ns, dur_ns       int64 nanoseconds, rounded half up; null when missing or no
                                    number below 2**62
                has_ts, has_dur     something was written there
                id                  as pid
                id2, args           JSON text, line breaks of pretty printing taken out
                correlation, external_id    the first whole number with that key in the args
    """

    templates: pl.DataFrame
    rows: pl.DataFrame

    def __len__(self) -> int:
        return len(self.rows)

    def whole(self) -> pl.DataFrame:
        """All columns of each event, those of its template too."""
        said = self.templates[self.rows["template"]]
        return pl.concat([self.rows.drop("template"), said], how="horizontal")

    def head(self, num: int) -> Events:
        """The first so many."""
        rows = self.rows.head(num)
        num_templates = rows.select(pl.col("template").max() + 1).item() or 0
        return Events(self.templates.head(num_templates), rows)


def events_of(decoded: Sequence[Event]) -> tuple[Events, int]:
    """Frames of events that were decoded one by one, and how many texts were not UTF-8.

    An end of a flow that a slice carries is an event of its own.
    """
    decoded = with_flows(decoded)
    texts = [pl.Series(name, [getattr(event, name) for event in decoded], pl.String)
             for name in _TEXTS]  # fmt: skip
    raws = [_utf8(name, [bytes(getattr(event, name)) for event in decoded]) for name in _RAWS]
    fields = pl.DataFrame([*texts, *(column for column, _ in raws)])
    said = fields.select(*_TEXTS, unquoted("pid"), unquoted("tid"))
    template, templates = _numbered(said)
    rows = fields.select(
        template,
        *(_ns(name) for name in ("ts", "dur")),
        *(pl.col(name).is_in(EMPTY).not_().alias(f"has_{name}") for name in ("ts", "dur")),
        unquoted("id"),
        *(pl.when(pl.col(name).is_in(EMPTY).not_()).then(on_one_line(name)).alias(name)
          for name in ("id2", "args")),
    )  # fmt: skip
    numbers = [number_in(rows["args"], key) for key in (CORRELATION, EXTERNAL_ID)]
    found = [number.alias(name) for number, name in zip(numbers, NUMBERS, strict=True)]
    return Events(templates, rows.with_columns(found)), sum(mended for _, mended in raws)


def _numbered(rows: pl.DataFrame) -> tuple[pl.Series, pl.DataFrame]:
    """The distinct rows, and for each row which of them it is."""
    distinct = rows.unique(maintain_order=True)
    known = distinct.with_row_index("template")
    found = rows.join(known, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")
    return found["template"], distinct


def unquoted(name: str) -> pl.Expr:
    """A JSON value as text without its quotes; null for one that stands for nothing."""
    text = pl.col(name)
    quoted = text.str.starts_with('"')
    plain = pl.when(quoted).then(text.str.slice(1, text.str.len_chars() - 2)).otherwise(text)
    return pl.when(text.is_in(EMPTY).not_()).then(plain).alias(name)


def on_one_line(name: str) -> pl.Expr:
    """JSON without the line breaks of pretty printing, and what they indent with."""
    return pl.col(name).str.replace_all(_LINE_BREAK, "")


def _ns(name: str) -> pl.Expr:
    return pl.col(name).map_batches(nanoseconds, return_dtype=pl.Int64).alias(f"{name}_ns")


def _utf8(name: str, texts: list[bytes]) -> tuple[pl.Series, int]:
    column = pl.Series(name, texts, pl.Binary)
    try:
        return column.cast(pl.String), 0
    except pl.exceptions.PolarsError:
        mended = [text.decode("utf-8", "replace") for text in texts]
        num = sum("\ufffd" in text for text in mended)
        return pl.Series(name, mended, pl.String), num
