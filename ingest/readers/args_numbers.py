"""Numbers that are looked for in the args of events."""

from __future__ import annotations

import polars as pl

CORRELATION, EXTERNAL_ID = "correlation", "External id"
_FOLLOWING = r"^\s*:\s*(\d{1,18})\s*[,}]"
_ANYWHERE = r"[{{,]\s*{}\s*:\s*(\d{{1,18}})\s*[,}}]"


def number_in(args: pl.Series, key: str) -> pl.Series:
    """The first whole number of up to 18 digits with that key in JSON; null where there is none."""
    quoted = f'"{key}"'
    at = args.str.find(quoted, literal=True)
    having = at.is_not_null().arg_true()
    texts = args.gather(having)
    behind = pl.col("args").cast(pl.Binary).bin.slice(pl.col("at") + len(quoted)).cast(pl.String)
    frame = pl.DataFrame({"args": texts, "at": at.gather(having).cast(pl.Int64)})
    number = frame.select(behind.str.extract(_FOLLOWING)).to_series()
    others = number.is_null().arg_true()
    if len(others):
        number = number.scatter(others, texts.gather(others).str.extract(_ANYWHERE.format(quoted)))
    return args.clear(len(args)).cast(pl.Int64).scatter(having, number.cast(pl.Int64))
