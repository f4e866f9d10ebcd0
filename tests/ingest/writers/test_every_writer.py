"""What holds of every writer: an ending chooses it, and it writes whole files, twice the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.errors import ConfigError, WriteError
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers import Writer, writer_of, writers
from tests.conftest import ROOT
from tests.tiers import sampled, slow
from tests.traces import trace_of

ALL = tuple(writers())
ENDINGS = [(writer, ending) for writer in ALL for ending in writer.endings]
each_writer = pytest.mark.parametrize("writer", ALL, ids=lambda writer: writer.endings[0])
each_ending = pytest.mark.parametrize(("writer", "ending"), ENDINGS, ids=[e for _, e in ENDINGS])
READ_AGAIN = {"NativeWriter", "ChromeWriter", "PerfettoWriter"}
"""Whose formats are read as well: that is not asked of every one."""
SAMPLES = (
    "fcfs-preemption-before.trace",
    "mix-admission-after.trace",
    "torch_executor_cpu.json.gz",
)


def contents(out: Path) -> dict[str, bytes]:
    files = [out] if out.is_file() else [file for file in out.rglob("*") if file.is_file()]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def test_an_ending_chooses_its_writer_and_no_other() -> None:
    for writer, ending in ENDINGS:
        assert type(writer_of(Path(f"out{ending}"))) is type(writer)
        assert [each for each in ALL if f"out{ending}".endswith(each.endings)] == [writer]


def test_a_name_of_another_ending_is_refused_and_every_ending_is_named() -> None:
    with pytest.raises(ConfigError, match="no format has this extension") as refused:
        writer_of(Path("out.parquet"))

    assert [ending for _, ending in ENDINGS if ending not in refused.value.todo] == []


@slow
@pytest.mark.parametrize("sample", sampled(SAMPLES, SAMPLES[:1]))
def test_a_sample_is_written_twice_the_same(
    sample_traces: Path, tmp_path: Path, sample: str
) -> None:
    trace = Trace.open(sample_traces / sample)
    (tmp_path / "again").mkdir()
    for writer, ending in ENDINGS:
        for folder in (tmp_path, tmp_path / "again"):
            writer.write(trace, folder / f"out{ending}")

        written = contents(tmp_path / f"out{ending}")
        assert sum(map(len, written.values())), ending
        assert contents(tmp_path / "again" / f"out{ending}") == written, ending


@each_writer
def test_what_is_in_the_way_stays_and_nothing_is_left_beside_it(
    tmp_path: Path, writer: Writer
) -> None:
    out = tmp_path / f"thesis{writer.endings[0]}"
    out.mkdir()
    (out / "chapter.tex").write_text("mine")

    with pytest.raises(WriteError):
        writer.write(trace_of(steps=[{"step": 1, "ts_ns": 0, "kind": "decode"}]), out)

    assert [file.name for file in tmp_path.rglob("*")] == [out.name, "chapter.tex"]


@each_ending
def test_the_page_on_formats_names_it(writer: Writer, ending: str) -> None:
    del writer
    page = (ROOT / "docs" / "formats.md").read_text("utf-8").partition("## Out")[2]

    assert f"`out{ending}`" in page


FAR = [
    {"ts_ns": 10, "dur_ns": 2**63 - 1},
    {"ts_ns": -(2**62) - 5, "dur_ns": 5},
    {"ts_ns": 2**63 - 1, "dur_ns": -7},
]


@each_writer
def test_times_beyond_all_are_written_and_read_again_where_the_format_is_read(
    tmp_path: Path, writer: Writer
) -> None:
    out = tmp_path / f"far{writer.endings[0]}"
    trace = trace_of(
        spans=[{"track": "t", "name": "n", "form": "slice", **each} for each in FAR],
        steps=[{"step": 1, "ts_ns": -(2**63), "kind": "decode", "dur_ns": 2**63 - 1}],
        counters=[{"ts_ns": 2**63 - 1, "name": "c", "value": 1.0}],
        flows=[{"ts_ns": 2**63 - 1, "flow": "1", "end": "start", "track": "t"}],
    )

    writer.write(trace, out)

    assert out.exists()
    if type(writer).__name__ in READ_AGAIN:
        shown = Trace.open(out).spans.filter(pl.col("name") == "n").collect()
        assert len(shown) == len(FAR)


@each_writer
def test_a_name_that_is_too_long_is_said_in_one_line(tmp_path: Path, writer: Writer) -> None:
    out = tmp_path / writer.endings[0].rjust(255, "n")

    with pytest.raises(WriteError, match="File name too long"):
        writer.write(trace_of(steps=[{"step": 1, "ts_ns": 0, "kind": "decode"}]), out)

    assert not [*tmp_path.iterdir()]
