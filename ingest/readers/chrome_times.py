"""Times of a Chrome JSON file: decimal microseconds as int64 nanoseconds, exactly.

Floats would not do: microseconds since 1970 with three decimals need 61 bits.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import polars as pl

LIMIT_NS = 1 << 62
EMPTY = ("", "null", '""')
"""JSON that stands for nothing."""
_LIMIT_US = LIMIT_NS // 1000
_MOST_DECIMALS = 3
_NS = pl.Series([1000, 100, 10, 1])  # of the last digit, by the number of decimals
_LIMIT = pl.Series([_LIMIT_US, _LIMIT_US * 10, _LIMIT_US * 100, _LIMIT_US * 1000])


def exact_ns(text: pl.Expr) -> pl.Expr:
    """Nanoseconds of JSON numbers as profilers write them; null where that is not enough.

    It is enough for up to three decimals below `LIMIT_NS`.
    """
    point = text.str.find(".", literal=True)
    decimals = (text.str.len_bytes() - point - 1).fill_null(0)
    known = pl.when(decimals <= _MOST_DECIMALS).then(decimals)
    digits = text.str.replace(".", "", literal=True).cast(pl.Int64, strict=False)
    limit = pl.lit(_LIMIT).gather(known)
    is_of_this_era = digits.is_between(-limit, limit, closed="none")
    return pl.when(is_of_this_era).then(digits * pl.lit(_NS).gather(known))


def nanoseconds(text: pl.Series) -> pl.Series:
    """Nanoseconds of any text, rounded half up; null where it is no number below `LIMIT_NS`."""
    frame = text.alias("text").to_frame()
    found = frame.select(exact_ns(pl.col("text"))).to_series()
    left = (found.is_null() & ~text.is_in(EMPTY)).arg_true()
    if len(left):
        found = found.scatter(left, frame[left].select(_by_digits()).to_series())
    return found


def _by_digits() -> pl.Expr:
    number = pl.col("text").str.strip_chars('"')
    parts = number.str.splitn(".", 2)
    whole = parts.struct[0].str.strip_prefix("-").cast(pl.Int64, strict=False)
    digits = parts.struct[1].fill_null("0").str.slice(0, 4).str.pad_end(4, "0")
    fraction = (digits.cast(pl.UInt32, strict=False).cast(pl.Int64) + 5) // 10
    magnitude = pl.when(whole.is_between(0, _LIMIT_US - 1)).then(whole * 1000 + fraction)
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
