"""Turning segments to Parquet: whatever happens, every row is there exactly once."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stepscope.ingest.manifest import Writer
from stepscope.ingest.readers.native import reader
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import compaction, compactor, recovery
from stepscope.ingest.recording.compaction import compact_segment, compact_writer
from stepscope.ingest.recording.recovery import segment_files
from stepscope.ingest.storage import store
from stepscope.ingest.trace import Trace
from tests.tiers import slow

NUM_ROWS = 600

pytestmark = pytest.mark.usefixtures("small_segments", "no_compactor")


class Killed(Exception):
    """Stands for a process that ends here."""


@pytest.fixture
def trace(rec: Recorder, tmp_path: Path) -> Path:
    """A trace of 600 steps and counters in many segments, as SIGKILL leaves it."""
    for row in range(NUM_ROWS):
        rec.steps(step=row, ts_ns=row, kind="decode", tag=f"tag {row}")
        rec.counters(ts_ns=row, name="waiting", value=float(row))
    return Path(shutil.copytree(rec.path, tmp_path / "killed.trace"))


def assert_every_row_once(trace: Path) -> None:
    opened = Trace.open(trace)
    assert opened.steps.sort("ts_ns").collect()["step"].to_list() == list(range(NUM_ROWS))
    values = opened.counters.sort("ts_ns").collect()["value"].to_list()
    assert values == [float(row) for row in range(NUM_ROWS)]


def test_a_closed_rank_is_one_file_per_table_and_no_journal(trace: Path) -> None:
    compact_writer(trace, Writer())

    files = sorted(str(file.relative_to(trace)) for file in trace.rglob("*.parquet"))
    assert [file.partition("/")[0] for file in files] == ["counters", "steps"]
    assert not list(trace.glob("journal*"))
    assert_every_row_once(trace)


@slow
@pytest.mark.parametrize("call", range(1, 5))
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_around_any_file_that_is_written_loses_and_doubles_nothing(
    trace: Path, monkeypatch: pytest.MonkeyPatch, call: int, moment: str
) -> None:
    for file in segment_files(trace / "journal.rank=0")[::4]:
        compact_segment(file)
    write, calls = store.write_parquet, iter(range(1, 100))

    def write_until_killed(*args: object) -> None:
        is_last = next(calls) == call
        if is_last and moment == "before":
            raise Killed
        write(*args)  # type: ignore[arg-type]  # what the caller gave
        if is_last:
            raise Killed

    monkeypatch.setattr(compaction, "write_parquet", write_until_killed)
    with pytest.raises(Killed):
        compact_writer(trace, Writer())

    assert_every_row_once(trace)
    monkeypatch.undo()
    compact_writer(trace, Writer())
    assert_every_row_once(trace)
    assert len(list(trace.rglob("*.parquet"))) == 2


def test_a_segment_whose_parquet_stands_is_not_read_again(trace: Path) -> None:
    first = segment_files(trace / "journal.rank=0")[0]
    kept = first.read_bytes()
    compact_segment(first)
    assert not first.exists()
    first.write_bytes(kept)

    assert_every_row_once(trace)


@pytest.mark.parametrize(
    ("where", "moment"),
    [(recovery, "read_segment"), (recovery, "read_tally"), (reader, "parquet_files")],
)
def test_a_segment_compacted_while_the_trace_is_opened_counts_once(
    trace: Path, monkeypatch: pytest.MonkeyPatch, where: ModuleType, moment: str
) -> None:
    look = getattr(where, moment)

    def compact_and_look(*args: object) -> object:
        for file in segment_files(trace / "journal.rank=0"):
            compact_segment(file)
        return look(*args)

    monkeypatch.setattr(where, moment, compact_and_look)

    assert_every_row_once(trace)


def test_a_segment_that_a_thread_still_writes_into_is_left_alone(trace: Path) -> None:
    last = [f for f in segment_files(trace / "journal.rank=0") if f.name.startswith("steps")][-1]

    compact_segment(last)

    assert last.exists()
    assert not (trace / "steps").exists()


def test_a_damaged_segment_keeps_the_journal(trace: Path) -> None:
    damaged = segment_files(trace / "journal.rank=0")[0]
    with damaged.open("r+b") as file:
        file.write(b"nonsense")

    compact_writer(trace, Writer())

    assert damaged.exists()
    assert "the header is damaged" in repr(Trace.open(trace))


def test_much_is_left_in_several_files(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "RUN_BYTES", 20 << 10)
    monkeypatch.setattr(compaction, "MERGED_ROWS", 10)

    compact_writer(trace, Writer())

    assert len(list((trace / "steps" / "rank=0").iterdir())) > 2
    assert_every_row_once(trace)
    assert Trace.open(trace).steps.collect()["step"].is_sorted()


def test_what_a_killed_process_had_begun_to_write_is_swept_away(trace: Path) -> None:
    draft = trace / "steps" / "rank=0" / ".000000-000000.parquet.77.tmp"
    draft.parent.mkdir(parents=True)
    draft.write_bytes(b"half")

    assert_every_row_once(trace)
    compact_writer(trace, Writer())

    assert not draft.exists()
    assert_every_row_once(trace)


def test_the_process_does_what_it_is_asked_line_by_line(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = segment_files(trace / "journal.rank=0")[0]
    asked = [
        {"segment": str(first)},
        {"trace": str(trace), "writer": "0"},
        {},
        {"segment": "never"},
    ]
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(map(json.dumps, asked))))

    compactor.main()

    assert not list(trace.glob("journal*"))
    assert_every_row_once(trace)


@slow
def test_the_process_ends_when_the_engines_end_of_the_pipe_does() -> None:
    beside = subprocess.Popen(
        [sys.executable, "-m", "stepscope.ingest.recording.compactor"], stdin=subprocess.PIPE
    )

    beside.communicate(timeout=180)

    assert beside.returncode == 0
