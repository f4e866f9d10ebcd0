"""What a reader in plain Python finds in a whole profile is what is read, no more and no less."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.readers.chrome import plain
from tests.ingest.readers.chrome.plain import Number, PlainFile, Slice, decoded
from tests.tiers import sampled, slow

SHARED = ROOT.parent / "shared"
SAMPLES = sorted((ROOT / "sample_traces").rglob("*.json.gz"))
REAL = sorted((SHARED / "data" / "kineto").glob("*.json.gz"))
REAL += [SHARED / "foreign" / name for name in ("xprof_trace_viewer.json", "merged_tp.json")]
FILES = [*SAMPLES, *(file for file in REAL if file.is_file())]


def as_read(file: Path) -> PlainFile:
    """The tables of a file in the same form; a place is a track of a rank: a lane already."""
    trace = Trace.open(file, cached=False)
    plain = PlainFile()
    columns = (
        "track", "name", "category", "form", "ts_ns", "dur_ns", "args", "correlation", "rank",
        "span", "parent",
    )  # fmt: skip
    rows = trace.spans.select(columns).collect().rows()
    by_span = {
        (rank, span): Slice(
            (track, str(rank)), name, cat, form, ts, dur, args and decoded(args), correlation
        )
        for track, name, cat, form, ts, dur, args, correlation, rank, span, _ in rows
    }
    for *_, rank, span, parent in rows:
        by_span[rank, span].inside = by_span.get((rank, parent))
    plain.slices = list(by_span.values())
    flows = trace.flows.select("flow", "name", "category", "end", "ts_ns").collect().rows()
    plain.flows = Counter(flows)
    plain.counters = Counter(trace.counters.select("ts_ns", "name", "value").collect().rows())
    return plain


@slow
@pytest.mark.parametrize("file", sampled(FILES, SAMPLES), ids=lambda file: file.name)
def test_a_whole_file_is_read_as_a_plain_reader_reads_it(file: Path) -> None:
    expected, found = plain.read(file), as_read(file)

    assert found.slices
    assert spans(found) == spans(expected)
    assert timed(found).tracks() == timed(expected).tracks()
    assert found.flows == expected.flows
    assert found.counters == expected.counters


def spans(plain: PlainFile) -> Counter[Any]:
    return Counter(each.told() for each in plain.slices)


def timed(plain: PlainFile) -> PlainFile:
    """All but instants, which have no lane of their own."""
    return PlainFile([each for each in plain.slices if each.form != "instant"])


def test_a_number_is_no_text_and_is_compared_as_it_is_written() -> None:
    assert decoded('[1.5, "1.5"]') == [Number("1.5"), "1.5"]
    assert decoded("[1.5]") != [Number("1.50")]
