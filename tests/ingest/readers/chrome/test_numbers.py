"""Numbers in Chrome JSON, however their writer spells them, in one pass and event by event."""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.readers.chrome.times import nanoseconds
from tests.ingest.kineto_files import open_bytes, rows
from tests.tiers import slow

# What is written, and its nanoseconds; none where it stands for no time of this era.
WRITTEN = [
    ("1.669783687352244e+15", 1_669_783_687_352_244_000),
    ("1.6697836873522441e15", 1_669_783_687_352_244_100),
    ("12.3456e1", 123_456),
    ("12.3456E1", 123_456),
    ("12.3456E+01", 123_456),
    ("123.456e-1", 12_346),
    ("123.4565e-1", 12_346),
    ("1.5e-9", 0),
    ("-0.0", 0),
    ("-0", 0),
    ("-1.25e0", -1_250),
    ("0.00049999999999999999", 0),
    ("0.0005", 1),
    ("1.00000000000000017", 1_000),
    ("4611686018427386.999", 4_611_686_018_427_386_999),
    ("4611686018427387", None),
    ("4.611686018427386e15", 4_611_686_018_427_386_000),
    ("4.611686018427387e15", None),
    ("1e308", None),
    ("-1e308", None),
    ("1e-400", 0),
    ('"1.669783687352244e+15"', 1_669_783_687_352_244_000),
    ('" 12.5 "', 12_500),
    ('"+5"', 5_000),
    ('"12.5e"', None),
    ('"1_000"', None),
    ('"0x10"', None),
    ('"1.2.3"', None),
    ('"12.5.5"', None),
    ('"1.5 s"', None),
    ('"nan"', None),
    ('"Infinity"', None),
    ('"\u0665"', None),
    ("true", None),
    ("[1]", None),
]


def test_a_time_is_what_its_digits_and_its_exponent_say() -> None:
    read = {written: nanoseconds(pl.Series([written])).item() for written, _ in WRITTEN}

    assert read == dict(WRITTEN)


@given(
    st.decimals(-(10**14), 10**14, places=6).map(Decimal),
    st.integers(-8, 8),
    st.sampled_from(["e", "E"]),
    st.booleans(),
)
def test_the_same_time_by_another_exponent_is_the_same(
    number: Decimal, exponent: int, letter: str, is_quoted: bool
) -> None:
    written = f"{number.scaleb(-exponent):f}{letter}{exponent:+d}"

    read = nanoseconds(pl.Series([f'"{written}"' if is_quoted else written])).item()

    assert read == int((number * 1000).quantize(Decimal(1), ROUND_HALF_UP))


@slow
@pytest.mark.parametrize("field", ["ts", "dur"])
def test_a_file_has_the_times_that_are_written_or_counts_what_it_skips(
    tmp_path: Path, field: str
) -> None:
    content = '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":%s,"dur":%s}]}'
    skipped = {f"{field} is not a number of this era": 1}
    read, expected = {}, {}
    for written, ns in WRITTEN:
        if (ns or 0) < 0:
            continue
        fields = {"ts": "1", "dur": "1"} | {field: written}
        trace = open_bytes(tmp_path, (content % (fields["ts"], fields["dur"])).encode())
        assert trace.manifest.report is not None
        times = rows(trace, "spans", f"{field}_ns") if ns is not None else []
        read[written] = times, trace.manifest.report.skipped if ns is None else {}
        expected[written] = ([], skipped) if ns is None else ([ns], {})

    assert read == expected


CORRELATIONS = {
    "5": 5, "5.0": 5, "5e0": 5, "0.5e1": 5, "5.000E+0": 5, '"5"': 5, '"5.0"': 5,
    "5.5": None, "-5": None, "5e400": None, '"a"': None, "null": None,
    "1e17": 10**17, "1e18": None,
}  # fmt: skip


@slow
@pytest.mark.parametrize("key", ["correlation", "External id"])
def test_a_correlation_is_a_whole_number_however_it_is_written(tmp_path: Path, key: str) -> None:
    content = '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"%s": %s}}]'

    read = {
        written: rows(
            open_bytes(tmp_path, (content % (key, written)).encode()), "spans", "correlation"
        )
        for written in CORRELATIONS
    }

    assert read == {written: [number] for written, number in CORRELATIONS.items()}


def test_a_correlation_is_found_whose_key_is_escaped(tmp_path: Path) -> None:
    content = (
        b'[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1,"args":{"c\\u006Frrelation": 5}}]'
    )

    assert rows(open_bytes(tmp_path, content), "spans", "correlation") == [5]


def test_a_counter_has_the_number_that_is_written(tmp_path: Path) -> None:
    content = '[{"ph":"C","name":"n","pid":1,"ts":1.5e3,"args":{"value": %s, "b": 1e999}}]'
    values = {"1.5e3": 1500.0, "15E+2": 1500.0, '"1.5e3"': 1500.0, "1500": 1500.0, "-0.0": 0.0}
    read = {}
    for written in values:
        trace = open_bytes(tmp_path, (content % written).encode())
        read[written] = rows(trace, "counters", "name", "ts_ns", "value")

    assert read == {written: [("n", 1_500_000, value)] for written, value in values.items()}


def test_the_time_that_a_file_counts_from_may_be_written_with_an_exponent(tmp_path: Path) -> None:
    event = json.dumps({"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1})
    bases = ("1790857026000000000", "1.790857026e18", "1790857026000000000.0")
    read = {}
    for base in bases:
        content = f'{{"baseTimeNanoseconds": {base}, "traceEvents": [{event}]}}'
        read[base] = open_bytes(tmp_path, content.encode()).manifest.clock.epoch_ns

    assert read == dict.fromkeys(bases, 1_790_857_026_000_000_000)
