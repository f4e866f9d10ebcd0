"""Numbers that are looked for in the args of events."""

from __future__ import annotations

import re

import polars as pl

from stepscope.ingest.readers.written_numbers import whole_below

_ESCAPED = r"\\u00[2-7]"
"""Letters of ASCII that are escaped though they need not be: a key may be written so."""
_ESCAPE = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|.)", re.DOTALL)
_LIMIT = 10**18
CORRELATION, EXTERNAL_ID = "correlation", "External id"
_FOLLOWING = r"^\s*:\s*(\d{1,18})\s*[,}]"
_WRITTEN = r'^\s*:\s*"?([0-9.][0-9.eE+-]*)"?\s*[,}]'
_ANYWHERE = r"[{{,]\s*{}\s*:\s*(\d{{1,18}})\s*[,}}]"


def number_in(args: pl.Series, key: str) -> pl.Series:
    """The first whole number of up to 18 digits with that key in JSON; null where there is none.

    Where the key first stands, the number may be written with a fraction or an exponent, or in
    quotes.
    """
    quoted = f'"{key}"'
    disguised = args.str.contains(_ESCAPED).arg_true()
    if len(disguised):
        args = args.scatter(disguised, [_unescaped(text) for text in args.gather(disguised)])
    at = args.str.find(quoted, literal=True)
    having = at.is_not_null().arg_true()
    texts = args.gather(having)
    whole = pl.col("args").cast(pl.Binary)
    after = whole.bin.slice(pl.col("at") + len(quoted)).cast(pl.String)
    # Behind a backslash it is the end of another key, which has a quote in it.
    behind = pl.when(whole.bin.slice(pl.col("at") - 1, 1) != b"\\").then(after)
    frame = pl.DataFrame({"args": texts, "at": at.gather(having).cast(pl.Int64)})
    number = frame.select(behind.str.extract(_FOLLOWING).cast(pl.Int64)).to_series()
    others = number.is_null().arg_true()
    if len(others):
        written = frame[others].select(behind.str.extract(_WRITTEN)).to_series()
        anywhere = texts.gather(others).str.extract(_ANYWHERE.format(quoted)).cast(pl.Int64)
        wholes = _wholes(written)
        number = number.scatter(others, wholes.zip_with(wholes.is_not_null(), anywhere))
    return args.clear(len(args)).cast(pl.Int64).scatter(having, number)


def _unescaped(args: str) -> str:
    """The same JSON, as it stands, with the letters that are escaped though they need not be."""
    return _ESCAPE.sub(_letter, args)


def _letter(escape: re.Match[str]) -> str:
    letter = chr(int(escape[1], 16)) if escape[1] else ""
    return letter if letter not in ('"', "\\", "") else escape[0]


def _wholes(written: pl.Series) -> pl.Series:
    found = [None if text is None else whole_below(text, _LIMIT) for text in written]
    return pl.Series(found, dtype=pl.Int64)
