"""Finishing what an engine that died left behind: every row stays, and so does what was lost."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.errors import RecordingError, TraceError, WriteError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import closing
from stepscope.ingest.recording.closing import close_recording
from stepscope.ingest.trace import Trace
from tests.ingest.recording.conftest import Script
from tests.tiers import slow

ROWS = 700
KILLED = """
import os, sys, time
from pathlib import Path
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import background

background.WORTH_BYTES = int(sys.argv[2])
rec = Recorder(sys.argv[1], producer="engine", rank=int(sys.argv[3]))
for row in range(700):
    rec.lifecycle(step=row, ts_ns=row, request=f"request {row}", event="arrive", num_generated=row)
    rec.steps(step=row, ts_ns=row, dur_ns=1, kind="decode")
while not background.WORTH_BYTES and not [*Path(sys.argv[1]).glob("*/rank=*/*.parquet")]:
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""
ALONE, BESIDE = 1 << 60, 0
"""From how many bytes on a segment is worth a process beside the engine."""


def killed(script: Script, trace: Path, worth: int = ALONE, rank: int = 0) -> Path:
    script(KILLED, trace, worth, rank).communicate()
    return trace


def rows_of(trace: Path) -> dict[str, pl.DataFrame]:
    opened = Trace.open(trace)
    return {
        name: opened.table(name).collect().sort("rank", "ts_ns") for name in ("lifecycle", "steps")
    }


def num_bytes(trace: Path) -> int:
    return sum(file.stat().st_size for file in trace.rglob("*") if file.is_file())


def damaged(journal: Path) -> Path:
    """Overwrite the header of the second segment of `steps`."""
    file = sorted(journal.glob("steps-*.seg"))[1]
    with file.open("r+b") as opened:
        opened.write(b"\xff" * 64)
    return file


@slow
def test_every_row_and_what_is_said_of_the_run_stay_and_the_journal_goes(
    tmp_path: Path, script: Script
) -> None:
    trace = killed(script, tmp_path / "run.trace")
    before, said, size = rows_of(trace), Trace.open(trace).manifest, num_bytes(trace)

    (rank,) = close_recording(trace)

    assert (str(rank.writer), rank.num_rows, rank.has_journal) == ("0", 2 * ROWS, False)
    assert not list(trace.glob("journal*"))
    assert num_bytes(trace) < size / 4
    after = rows_of(trace)
    assert all(after[name].equals(before[name]) for name in before)
    assert len(after["steps"]) == ROWS
    assert Trace.open(trace).manifest == said
    assert not said.closed


def test_what_a_process_beside_the_engine_had_compacted_is_not_there_twice(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = killed(script, tmp_path / "run.trace")
    with monkeypatch.context() as patched:
        patched.setattr(closing, "write_manifest", full)
        with pytest.raises(WriteError, match="make room"):
            close_recording(trace)
    assert list(trace.glob("steps/rank=0/*.parquet"))
    assert list(trace.glob("journal*"))

    assert len(rows_of(trace)["steps"]) == ROWS
    close_recording(trace)

    assert len(rows_of(trace)["steps"]) == ROWS
    assert not list(trace.glob("journal*"))


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_recording_that_goes_on_is_refused_and_left_alone(tmp_path: Path) -> None:
    trace = tmp_path / "run.trace"
    with Recorder(trace, producer="engine") as recorder:
        recorder.steps(step=1, ts_ns=0, kind="decode")

        with pytest.raises(RecordingError, match="rank 0 is still being recorded; stop the engine"):
            close_recording(trace)

        recorder.steps(step=2, ts_ns=1, kind="decode")
    assert Trace.open(trace).steps.collect()["step"].to_list() == [1, 2]


FINISHES = """
import sys, time
from pathlib import Path
from stepscope.ingest.recording import closing

compact = closing.compact_journal
def slowly(path, writer):
    Path(sys.argv[2]).touch()
    while Path(sys.argv[2]).exists():
        time.sleep(0.01)
    return compact(path, writer)
closing.compact_journal = slowly
closing.close_recording(Path(sys.argv[1]))
"""


def test_who_closes_a_recording_that_another_process_is_closing_waits_until_that_is_done(
    tmp_path: Path, script: Script
) -> None:
    trace, begun = killed(script, tmp_path / "run.trace"), tmp_path / "begun"
    before, said = rows_of(trace), Trace.open(trace).manifest
    other = script(FINISHES, trace, begun)
    deadline = time.monotonic() + 180
    while not begun.exists():
        assert time.monotonic() < deadline, "the other process does not begin"
        time.sleep(0.01)
    assert Trace.open(trace).manifest == said, "nobody records any more"
    told: list[str] = []

    def ends_the_other(what: str, *_: object) -> None:
        told.append(what)
        begun.unlink(missing_ok=True)

    assert close_recording(trace, ends_the_other) == []

    assert told == ["waiting for another process that closes it"]
    other.communicate()
    assert other.returncode == 0
    assert not list(trace.glob("journal*"))
    after = rows_of(trace)
    assert all(after[name].equals(before[name]) for name in before)
    assert Trace.open(trace).manifest == said


@slow
def test_one_rank_that_goes_on_keeps_the_others_from_being_closed(
    tmp_path: Path, script: Script
) -> None:
    trace = killed(script, tmp_path / "run.trace", rank=1)
    with Recorder(trace, producer="engine"), pytest.raises(RecordingError, match="rank 0"):
        close_recording(trace)

    assert [str(rank.writer) for rank in close_recording(trace)] == ["1"]
    manifest = Trace.open(trace).manifest
    assert (manifest.ranks, manifest.closed) == ((0, 1), False)
    assert set(manifest.recovered or {}) == {"1"}


def test_a_recording_that_is_closed_has_nothing_to_close(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="engine") as recorder:
        recorder.steps(step=1, ts_ns=0, kind="decode")

    assert close_recording(tmp_path / "run.trace") == []
    assert Trace.open(tmp_path / "run.trace").manifest.closed


@slow
def test_what_cannot_be_read_stays_in_the_journal_and_all_else_is_kept(
    tmp_path: Path, script: Script
) -> None:
    trace = killed(script, tmp_path / "run.trace")
    file = damaged(trace / "journal.rank=0")
    before, said = rows_of(trace), Trace.open(trace).manifest

    (rank,) = close_recording(trace)

    assert rank.has_journal
    assert rank.notes == (f"{file.name}: the header is damaged",)
    after = rows_of(trace)
    assert all(after[name].equals(before[name]) for name in before)
    assert Trace.open(trace).manifest == said
    assert file.exists()
    (again,) = close_recording(trace)
    assert (again.num_rows, again.has_journal) == (0, True)
    assert Trace.open(trace).manifest == said


def test_a_closed_run_whose_rows_did_not_fit_on_the_disk_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = tmp_path / "run.trace"
    with monkeypatch.context() as patched:
        patched.setattr("stepscope.ingest.recording.compaction.write_parquet", full)
        with Recorder(trace, producer="engine") as recorder:
            recorder.steps(step=1, ts_ns=0, kind="decode")
    assert list(trace.glob("journal*"))

    (rank,) = close_recording(trace)

    assert (rank.num_rows, rank.has_journal) == (1, False)
    manifest = Trace.open(trace).manifest
    assert (manifest.closed, manifest.recovered) == (True, None)
    assert manifest.tables == {"steps": "complete"}


@slow
def test_a_journal_whose_manifest_is_lost_is_closed_too(tmp_path: Path, script: Script) -> None:
    trace = killed(script, tmp_path / "run.trace")
    (trace / "manifest.json").unlink()

    close_recording(trace)

    manifest = Trace.open(trace).manifest
    assert (manifest.producer, manifest.closed) == ("unknown", False)
    assert manifest.report is not None
    assert manifest.report.notes == ("manifest.json is missing",)
    assert len(rows_of(trace)["steps"]) == ROWS


@pytest.mark.parametrize("name", ["no.trace", "empty", "file"])
def test_where_there_is_no_recording_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")

    with pytest.raises(TraceError, match="it is not a recording"):
        close_recording(tmp_path / name)


def test_the_process_beside_an_engine_that_is_killed_finishes_its_journal(
    tmp_path: Path, script: Script
) -> None:
    trace = killed(script, tmp_path / "run.trace", BESIDE)

    deadline = time.monotonic() + 180
    while list(trace.glob("journal*")):
        assert time.monotonic() < deadline, "nobody finished it"
        time.sleep(0.02)

    manifest = Trace.open(trace).manifest
    assert not manifest.closed
    assert manifest.recovered is not None
    assert manifest.recovered["0"]["discarded_bytes"] == 0
    found = rows_of(trace)
    assert found["lifecycle"]["request"].to_list() == [f"request {row}" for row in range(ROWS)]
    assert len(found["steps"]) == ROWS


@slow
def test_a_trace_that_is_being_closed_can_be_opened_at_every_moment(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = killed(script, tmp_path / "run.trace")
    expected, seen = rows_of(trace), []

    def looked(do: object, *arguments: object) -> object:
        found = rows_of(trace)
        seen.append(all(found[name].equals(expected[name]) for name in expected))
        return do(*arguments)  # type: ignore[operator]  # what was replaced is a function

    for place, name in (
        (closing, "compact_journal"), (closing, "write_manifest"), (shutil, "rmtree"),
    ):  # fmt: skip
        real = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *a, real=real: looked(real, *a))
    close_recording(trace)

    assert seen == [True, True, True]
