"""A directory for each start of an engine, and all that its processes record in one trace."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.analyzers.rules.trc.trc001_not_closed import NotClosed
from stepscope.ingest.errors import ConfigError, RecordingError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.closing import close_recording
from stepscope.ingest.recording.starts import new_start
from stepscope.ingest.trace import Trace
from tests.tiers import slow

RANK = """
import sys
from stepscope.ingest.recorder import Recorder

with Recorder.under(sys.argv[1], producer="engine", rank=int(sys.argv[2])) as rec:
    rec.steps(step=int(sys.argv[2]), ts_ns=0, kind="decode")
    print(rec.path.name)
"""


@pytest.fixture(autouse=True)
def _no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_START", "")


def ranks(parent: Path, number: int) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(parent), str(rank)], stdout=subprocess.PIPE, text=True
        )
        for rank in range(number)
    ]


def names(processes: list[subprocess.Popen[str]]) -> set[str]:
    return {process.communicate()[0].strip() for process in processes}


def test_each_start_has_a_directory_of_its_own_that_says_when_and_who(tmp_path: Path) -> None:
    paths = []
    for _ in range(3):
        new_start()
        with Recorder.under(tmp_path / "traces", producer="engine") as rec:
            rec.steps(step=0, ts_ns=0, kind="decode")
        paths.append(rec.path)

    assert len(set(paths)) == 3
    assert sorted(paths) == paths
    when = rf"\d{{8}}T\d{{6}}\.\d{{6}}Z-{os.getpid()}\.trace"
    assert all(re.fullmatch(when, path.name) for path in paths)
    assert [Trace.open(path).num_rows("steps") for path in paths] == [1, 1, 1]


@slow
def test_ranks_that_start_at_once_record_into_one_trace(tmp_path: Path) -> None:
    name = new_start()

    assert names(ranks(tmp_path, 3)) == {f"{name}.trace"}

    trace = Trace.open(tmp_path / f"{name}.trace")
    assert trace.manifest.ranks == (0, 1, 2)
    assert trace.steps.sort("rank").collect()["step"].to_list() == [0, 1, 2]


@slow
def test_a_start_of_the_same_name_goes_on_in_a_directory_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_START", "nightly")

    found = [names(ranks(tmp_path, 2)) for _ in range(3)]

    assert found == [{"nightly.trace"}, {"nightly-2.trace"}, {"nightly-3.trace"}]
    assert Trace.open(tmp_path / "nightly-2.trace").manifest.ranks == (0, 1)


@slow
def test_without_a_name_each_process_has_a_start_of_its_own(tmp_path: Path) -> None:
    assert len(names(ranks(tmp_path, 2))) == 2


@pytest.mark.parametrize("name", ["../up", "a/b", "-", ".", "a b", "x" * 200])
def test_a_name_that_is_no_name_of_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("STEPSCOPE_START", name)

    with pytest.raises(ConfigError, match="the name of a start"):
        Recorder.under(tmp_path, producer="engine")


def test_a_parent_that_cannot_be_made_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(RecordingError, match="cannot be recorded into"):
        Recorder.under(tmp_path / "file", producer="engine")


def engine_and_front_end(path: Path) -> tuple[Recorder, Recorder]:
    engine = Recorder(path, producer="engine", config={"budget": 8})
    front_end = Recorder(path, producer="engine", part="front-end")
    front_end.lifecycle(ts_ns=1, request="a", event="receive")
    engine.lifecycle(ts_ns=2, request="a", event="arrive")
    engine.steps(step=0, ts_ns=3, kind="prefill")
    front_end.lifecycle(ts_ns=4, request="a", event="deliver", num_generated=1)
    return engine, front_end


def events(trace: Trace) -> list[tuple[int, str]]:
    return trace.lifecycle.sort("ts_ns").select("rank", "event").collect().rows()


def test_a_front_end_records_rows_of_the_rank_that_serves_it(tmp_path: Path) -> None:
    for recorder in engine_and_front_end(tmp_path / "run.trace"):
        recorder.close()

    trace = Trace.open(tmp_path / "run.trace")

    assert events(trace) == [(0, "receive"), (0, "arrive"), (0, "deliver")]
    assert (trace.manifest.ranks, trace.manifest.closed) == ((0,), True)
    assert trace.manifest.config == {"budget": 8}
    assert trace.manifest.tables == {"lifecycle": "complete", "steps": "complete"}


def test_a_part_that_dies_is_recovered_and_named_and_can_be_closed(tmp_path: Path) -> None:
    engine, front_end = engine_and_front_end(tmp_path / "run.trace")
    engine.close()
    path = Path(shutil.copytree(tmp_path / "run.trace", tmp_path / "killed.trace"))
    front_end.close()

    trace = Trace.open(path)
    assert events(trace) == [(0, "receive"), (0, "arrive"), (0, "deliver")]
    assert not trace.manifest.closed
    assert set(trace.manifest.recovered or {}) == {"0.front-end"}
    (found,) = NotClosed().check(trace)
    assert found.message.startswith("the recording of rank 0, front-end, was not closed: 2 rows")
    (closed,) = close_recording(path)

    assert (str(closed.writer), closed.num_rows) == ("0.front-end", 2)
    assert events(Trace.open(path)) == events(trace)
    assert not list(path.glob("journal*"))


@pytest.mark.parametrize(("rank", "part"), [(-1, ""), (0, "Front End"), (0, "../x"), (0, "a.b")])
def test_a_rank_or_part_that_is_no_name_is_refused(tmp_path: Path, rank: int, part: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid name"):
        Recorder(tmp_path / "run.trace", producer="engine", rank=rank, part=part)


def test_a_part_is_recorded_once(tmp_path: Path) -> None:
    with (
        Recorder(tmp_path / "run.trace", producer="engine", part="front-end"),
        pytest.raises(RecordingError, match=r"rank 0\.front-end is recorded there already"),
    ):
        Recorder(tmp_path / "run.trace", producer="engine", part="front-end")
