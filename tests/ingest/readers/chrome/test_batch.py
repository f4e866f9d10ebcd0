"""What is kept of a window of events."""

from __future__ import annotations

import contextlib
import json
import re
from fractions import Fraction
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.readers.args_numbers import number_in
from stepscope.ingest.readers.chrome.collect import collected
from stepscope.ingest.readers.chrome.event import Event
from stepscope.ingest.readers.chrome.frames import events_of
from stepscope.ingest.storage.spool import packed, unpacked
from tests.tiers import slow

KEYS = st.sampled_from(["correlation", "External id", "x correlation", '"correlation"', "a"])
NUMBERS = st.integers(-5, 10**20) | st.floats(allow_nan=False) | st.text(max_size=3) | st.none()
ARGS = st.recursive(
    st.dictionaries(KEYS, NUMBERS, max_size=3), lambda inner: st.dictionaries(KEYS, inner)
)


@given(st.lists(ARGS | st.none(), max_size=8), st.sampled_from([None, 1]))
def test_the_number_of_a_key_is_the_first_that_a_search_finds(
    made: list[dict[str, Any] | None], indent: int | None
) -> None:
    texts = [None if args is None else json.dumps(args, indent=indent) for args in made]

    numbers = number_in(pl.Series("args", texts, pl.String), "correlation")

    assert numbers.to_list() == [searched(text or "") for text in texts]


def searched(text: str) -> int | None:
    """The number where the key first stands, in any spelling; else the next in plain digits."""
    first = re.match(r'\s*:\s*"?([\d.][\d.eE+-]*)"?\s*[,}]', text.partition('"correlation"')[2])
    with contextlib.suppress(ValueError, OverflowError):
        if first and (number := Fraction(first[1])) < 10**18 and number.denominator == 1:
            return int(number)
    match = re.search(r'[{,]\s*"correlation"\s*:\s*(\d{1,18})\s*[,}]', text)
    return match and int(match[1])


@pytest.mark.parametrize("texts", [[], ["{}", None, "é" * 99]])
def test_packed_text_comes_back(texts: list[str | None]) -> None:
    column = pl.Series("args", texts, pl.String)

    assert unpacked("args", [packed(column)] * 2).collect()["args"].equals(column.append(column))
    assert unpacked("args", []).collect().is_empty()


@slow
@given(st.lists(st.sampled_from(["X", "i", "B", "s"])), st.sampled_from([-1, 0, 5, None]))
def test_every_event_is_a_plain_slice_or_another(phs: list[str], dur: int | None) -> None:
    made = [{"ph": ph, "ts": 1, "dur": dur, "args": {"n": n}} for n, ph in enumerate(phs)]
    events, _ = events_of(msgspec.json.decode(json.dumps(made), type=list[Event]))

    batch = collected(events)

    is_plain = [ph == "X" and dur is not None and dur >= 0 for ph in phs]
    assert len(batch.slices) == sum(is_plain)
    assert batch.others["event"].to_list() == [n for n, plain in enumerate(is_plain) if not plain]
    args = unpacked("args", batch.args.parts).collect()["args"]
    assert args.to_list() == [f'{{"n": {n}}}' for n, plain in enumerate(is_plain) if plain]
