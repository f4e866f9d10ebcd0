"""Times of a Chrome JSON file: decimal microseconds as int64 nanoseconds, exactly.

Floats would not do: microseconds since 1970 with three decimals need 61 bits.
"""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from stepscope.ingest.readers.written_numbers import exact

LIMIT_NS = 1 << 62
EMPTY = ("", "null", '""')
"""JSON that stands for nothing."""
_LIMIT_US = LIMIT_NS // 1000
_IN_NS = pl.Decimal(38, 3)
_PLAIN = r"^-?[0-9]+(?:\.[0-9]+)?$"
_NS = Decimal("0.001")
_LONGEST_FRACTION = 4  # with its point


def exact_ns(text: pl.Expr) -> pl.Expr:
    """Nanoseconds of JSON numbers as profilers write them; null where that is not enough.

    It is enough for up to three decimals below `LIMIT_NS`, without an exponent.
    """
    point = text.str.find(".", literal=True)
    fraction = (text.str.len_bytes() - point).fill_null(0)
    has_exponent = text.str.contains("e", literal=True) | text.str.contains("E", literal=True)
    ns = text.cast(_IN_NS, strict=False).to_physical().cast(pl.Int64, strict=False)
    limit = _LIMIT_US * 1000
    is_exact = (fraction <= _LONGEST_FRACTION) & ~has_exponent
    return pl.when(is_exact & ns.is_between(-limit, limit, closed="none")).then(ns)


def nanoseconds(text: pl.Series) -> pl.Series:
    """Nanoseconds of any text, rounded half up; null where it is not a number below `LIMIT_NS`.

    A number may have an exponent, and may stand in quotes.
    """
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
    signed = pl.when(number.str.starts_with("-")).then(-magnitude).otherwise(magnitude)
    plain = pl.when(number.str.contains(_PLAIN)).then(signed)
    other = pl.when(plain.is_null()).then(number)
    return pl.coalesce(plain, other.map_batches(_scientific, return_dtype=pl.Int64))


def _scientific(numbers: pl.Series) -> pl.Series:
    found = numbers.drop_nulls().unique().to_list()
    values = {number: _decimal_ns(number) for number in found}
    return pl.Series([values.get(number) for number in numbers], dtype=pl.Int64)


def _decimal_ns(number: str) -> int | None:
    value = exact(number)
    # `abs` would round, and overflow where the exponent does.
    if value is None or value.copy_abs() >= _LIMIT_US:
        return None
    return int(value.quantize(_NS, "ROUND_HALF_UP").scaleb(3))
