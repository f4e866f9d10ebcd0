"""Events as columns: one row per event, times exact, and a reason where a row must be skipped."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

import polars as pl

from stepscope.ingest.readers.event_columns import RAWS, TEXTS

LIMIT_NS = 1 << 62
_LIMIT_US = Decimal(LIMIT_NS // 1000)
_EMPTY = ("", "null", '""')
_PRETTY = r"\s*[\r\n]\s*"
MAX_LABEL = 12


def event_table(batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Columns of all events, in the order of the file.

    ph, name, cat   text
    pid, tid, id    text without its quotes; null when missing, null or empty
    id2, args       JSON text, line breaks of pretty printing taken out
    ts_ns, dur_ns   int64 nanoseconds, rounded half up; null when missing or no number below 2**62
    has_ts, has_dur something was written there
    """
    frames = [_columns(batch) for batch in batches]
    none = pl.DataFrame(schema=dict.fromkeys((*TEXTS, *RAWS), pl.String))
    return pl.concat(frames or [_columns(none)]).with_row_index("event")


def _columns(batch: pl.DataFrame) -> pl.DataFrame:
    return batch.with_columns(pl.col("ph", *RAWS).fill_null("")).select(
        *TEXTS, *_times(), *_ids(), _json("id2"), _json("args")
    )


def _times() -> list[pl.Expr]:
    return [
        expr
        for name in ("ts", "dur")
        for expr in (
            pl.col(name).map_batches(nanoseconds, return_dtype=pl.Int64).alias(f"{name}_ns"),
            pl.col(name).is_in(_EMPTY).not_().alias(f"has_{name}"),
        )
    ]


def _ids() -> list[pl.Expr]:
    return [_unquoted(pl.col(name)) for name in ("pid", "tid", "id")]


def _unquoted(text: pl.Expr) -> pl.Expr:
    quoted = text.str.starts_with('"')
    plain = pl.when(quoted).then(text.str.slice(1, text.str.len_chars() - 2)).otherwise(text)
    return pl.when(text.is_in(_EMPTY).not_()).then(plain)


def _json(name: str) -> pl.Expr:
    text = pl.col(name)
    return pl.when(text.is_in(_EMPTY).not_()).then(text.str.replace_all(_PRETTY, ""))


def nanoseconds(text: pl.Series) -> pl.Series:
    """Decimal microseconds as int64 nanoseconds, from their text, rounded half up.

    Floats would not do: microseconds since 1970 with three decimals need 61 bits.
    """
    frame = text.alias("text").to_frame()
    found = frame.select(_at_once()).to_series()
    left = (found.is_null() & ~text.is_in(_EMPTY)).arg_true()
    if len(left):
        found = found.scatter(left, frame[left].select(_by_digits()).to_series())
    return found


def _at_once() -> pl.Expr:
    """What has no more than three decimals and is of this era, as what a profiler writes."""
    exact = pl.col("text").cast(pl.Decimal(38, 3), strict=False)
    is_exact = exact == pl.col("text").cast(pl.Decimal(38, 6), strict=False)
    magnitude = LIMIT_NS // 1000
    is_sound = is_exact & exact.is_between(-magnitude, magnitude, closed="none")
    return (pl.when(is_sound).then(exact) * 1000).cast(pl.Int64, strict=False)


def _by_digits() -> pl.Expr:
    number = pl.col("text").str.strip_chars('"')
    parts = number.str.splitn(".", 2)
    whole = parts.struct[0].str.strip_prefix("-").cast(pl.Int64, strict=False)
    digits = parts.struct[1].fill_null("0").str.slice(0, 4).str.pad_end(4, "0")
    fraction = (digits.cast(pl.UInt32, strict=False).cast(pl.Int64) + 5) // 10
    magnitude = pl.when(whole.is_between(0, LIMIT_NS // 1000 - 1)).then(whole * 1000 + fraction)
    exact = pl.when(number.str.starts_with("-")).then(-magnitude).otherwise(magnitude)
    other = pl.when(exact.is_null()).then(number)
    return pl.coalesce(exact, other.map_batches(_scientific, return_dtype=pl.Int64))


def _scientific(numbers: pl.Series) -> pl.Series:
    found = numbers.drop_nulls().unique().to_list()
    values = {number: _decimal_ns(number) for number in found}
    return pl.Series([values.get(number) for number in numbers], dtype=pl.Int64)


def _decimal_ns(number: str) -> int | None:
    try:
        value = Decimal(number)
    except InvalidOperation:
        return None
    # `abs` would round, and overflow where the exponent does.
    if not value.is_finite() or value.copy_abs() >= _LIMIT_US:
        return None
    return int((value * 1000).quantize(Decimal(1), "ROUND_HALF_UP"))
