"""Where a recorder writes, when it is closed, and what it refuses before the first row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.ingest.errors import RecordingError
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.tiers import slow


def test_an_exception_passes_through_and_leaves_a_closed_trace(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        Recorder(tmp_path / "run.trace", producer="test") as rec,
        rec.span("schedule"),
    ):
        raise ZeroDivisionError

    trace = Trace.open(tmp_path / "run.trace")
    assert trace.manifest.closed
    assert trace.num_rows("spans") == 1


def test_the_manifest_says_what_the_engine_said(tmp_path: Path) -> None:
    with Recorder(
        tmp_path / "run.trace",
        producer="vllm",
        producer_version="0.9",
        clock=ClockInfo("virtual"),
        config={"budget": 512},
        workload={"requests": [1, 2]},
        scenario="mix-admission",
        variant="before",
    ) as rec:
        rec.steps(step=0, ts_ns=0, kind="idle")

    said = Trace.open(rec.path).manifest
    assert (said.producer, said.producer_version) == ("vllm", "0.9")
    assert said.clock == ClockInfo("virtual")
    assert said.config == {"budget": 512}
    assert said.workload == {"requests": [1, 2]}
    assert (said.scenario, said.variant) == ("mix-admission", "before")
    assert (said.closed, said.recovered, said.tables) == (True, None, {"steps": "complete"})


@slow
def test_it_needs_the_standard_library_only(tmp_path: Path) -> None:
    source = f"""
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
from stepscope.ingest.recorder import Recorder
with Recorder({str(tmp_path / "run.trace")!r}, producer="bare") as rec:
    with rec.span("work"):
        rec.steps(step=1, ts_ns=2, kind="decode")
foreign = {{name.partition(".")[0] for name in sys.modules}} - sys.stdlib_module_names
print(*sorted(foreign - {{"__main__", "stepscope"}}))
"""

    # -S: no site-packages at all; -I: nothing from the environment either.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == []
    assert Trace.open(tmp_path / "run.trace").num_rows("steps") == 1


@slow
def test_a_forgotten_recorder_is_closed_at_exit(tmp_path: Path) -> None:
    source = f"""
from stepscope.ingest.recorder import Recorder
rec = Recorder({str(tmp_path / "run.trace")!r}, producer="forgetful")
rec.steps(step=1, ts_ns=2, kind="decode")
"""

    subprocess.run([sys.executable, "-c", source], check=True)

    assert Trace.open(tmp_path / "run.trace").manifest.closed
    assert not list((tmp_path / "run.trace").glob("journal*"))


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name in ("a.trace", "b.trace"):
        with Recorder(tmp_path / name, producer="t", clock=ClockInfo("virtual")) as rec:
            for step in range(3_000):
                rec.steps(step=step, ts_ns=step, kind="decode", tag=f"tag {step}")
        files = sorted(file for file in rec.path.rglob("*") if file.is_file())
        written.append({str(file.relative_to(rec.path)): file.read_bytes() for file in files})

    assert written[0] == written[1]
    assert sorted(written[0]) == ["manifest.json", "steps/rank=0/000000-000001.parquet"]


@pytest.mark.parametrize("name", ["taken.txt", "full"])
def test_it_records_over_nothing_that_is_not_a_trace(tmp_path: Path, name: str) -> None:
    (tmp_path / "taken.txt").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")

    with pytest.raises(RecordingError, match="choose a"):
        Recorder(tmp_path / name, producer="test")

    assert not list((tmp_path / "full").glob("journal*"))


def test_an_empty_directory_can_be_recorded_into(tmp_path: Path) -> None:
    with Recorder(tmp_path, producer="test") as rec:
        rec.steps(step=0, ts_ns=0, kind="idle")

    assert Trace.open(tmp_path).num_rows("steps") == 1


def test_a_rank_is_recorded_once(rec: Recorder) -> None:
    with pytest.raises(RecordingError, match="rank 0 is recorded there already"):
        Recorder(rec.path, producer="test")
    rec.close()
    with pytest.raises(RecordingError, match="rank 0 is recorded there already"):
        Recorder(rec.path, producer="test")


def test_a_path_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(RecordingError, match="cannot be recorded into: Not a directory"):
        Recorder(tmp_path / "file" / "run.trace", producer="test")


@pytest.mark.parametrize("config", [{("a", "b"): 1}, {"deep": {frozenset(): 2}}])
def test_a_configuration_that_is_no_json_is_refused_and_leaves_nothing(
    tmp_path: Path, config: dict[str, object]
) -> None:
    with pytest.raises(RecordingError, match="cannot be recorded into: keys must be str"):
        Recorder(tmp_path / "run.trace", producer="test", config=config)

    Recorder(tmp_path / "run.trace", producer="test").close()


def test_a_value_that_is_no_json_is_spelt(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test", config={"path": Path("/x")}) as rec:
        pass

    assert Trace.open(rec.path).manifest.config == {"path": "/x"}
