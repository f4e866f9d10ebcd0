"""The cache of recorded runs: shared by processes, robust to killed ones, never of other source."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stepscope.engine.runs.rerun import run_to_its_end
from stepscope.engine.runs.scenario import Options, RunResult, Scenario
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.engine.asked import asked
from tests.engine.mixed_runs import SMALL
from tests.engine.recorded_once import (
    RecordedOnce,
    digest,
    recording_digest,
    shared_runs,
    source_files,
)
from tests.tiers import slow

NAME = "waiting-queue"
LOADS = """
import sys
from pathlib import Path
import stepscope.ingest.recording.compactor
from stepscope.engine.scenarios import SCENARIOS, scenario
from tests.engine.asked import SMALL, asked
for name in ("slot-recycling", "waiting-queue"):
    scenario(name).record("after", Path(sys.argv[1]) / name, asked(SMALL[name]))
for name, module in [*sys.modules.items()]:
    if name.startswith("stepscope.") and getattr(module, "__file__", None):
        print(module.__file__)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RecordedOnce]:
    with shared_runs(tmp_path / "runs", "a" * 16) as opened:
        yield opened


@pytest.fixture
def recordings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths at which runs are recorded, as they are."""
    paths: list[Path] = []

    def counted(of: Scenario, variant: str, out: Path, options: Options) -> RunResult:
        paths.append(out)
        return run_to_its_end(of, variant, out, options)

    monkeypatch.setattr(f"{RecordedOnce.__module__}.run_to_its_end", counted)
    return paths


def test_a_run_is_recorded_once_whatever_the_order_of_its_options(
    runs: RecordedOnce, recordings: list[Path]
) -> None:
    settings = {"requests": "3", "num_kv_blocks": "64"}
    first = runs.run("fcfs-preemption", "after", asked(settings))
    again = runs.run("fcfs-preemption", "after", asked(dict(reversed(settings.items()))))

    assert (first, len(recordings)) == (again, 1)


@slow
def test_other_options_are_another_run(runs: RecordedOnce) -> None:
    small = {"requests": "3"}
    paths = {
        runs.run("fcfs-preemption", variant, options).path
        for variant in ("before", "after")
        for options in (asked(small), asked(small, seed=1), asked({"requests": "2"}))
    }

    assert len(paths) == 6


def test_a_run_survives_until_another_session(tmp_path: Path, recordings: list[Path]) -> None:
    for _ in range(2):
        with shared_runs(tmp_path / "runs", "a" * 16) as runs:
            assert runs.trace(NAME, "after").steps.collect().height

    assert len(recordings) == 1


def test_runs_of_another_digest_are_not_used_and_removed(
    tmp_path: Path, recordings: list[Path]
) -> None:
    for source in ("a" * 16, "b" * 16):
        with shared_runs(tmp_path / "runs", source) as runs:
            runs.run(NAME, "after")

    assert len(recordings) == 2
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"b" * 16, "lock"}


def test_runs_of_another_digest_stay_while_a_process_uses_them(tmp_path: Path) -> None:
    with shared_runs(tmp_path / "runs", "a" * 16) as older:
        path = older.run(NAME, "after").path
        with shared_runs(tmp_path / "runs", "b" * 16):
            assert path is not None
            assert Trace.open(path).steps.collect().height


def test_a_run_that_a_killed_process_left_unfinished_is_recorded_again(
    runs: RecordedOnce, recordings: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(pickle, "dumps", _killed)
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            runs.run(NAME, "after")
    (unfinished,) = runs.folder.iterdir()

    assert runs.trace(NAME, "after").steps.collect().height
    with shared_runs(runs.folder.parent, runs.folder.name):
        assert unfinished.exists(), "the process that left it might still be running"
    assert len(recordings) == 2


def test_what_a_killed_process_left_is_removed_by_the_next_that_runs_alone(tmp_path: Path) -> None:
    (tmp_path / "runs" / "a" / "0123.xyz").mkdir(parents=True)

    with shared_runs(tmp_path / "runs", "a") as runs:
        assert list(runs.folder.iterdir()) == []


def test_processes_that_record_a_run_at_once_get_the_same(runs: RecordedOnce) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = set(pool.map(lambda _: str(runs.run(NAME, "after")), range(8)))

    assert len(results) == 1
    assert len(list(runs.folder.iterdir())) == 1


@slow
def test_a_trace_that_a_test_wrote_into_is_recorded_again(
    runs: RecordedOnce, recordings: list[Path]
) -> None:
    path = runs.run(NAME, "after").path
    assert path is not None
    (path / "notes.txt").write_text("mine")
    damaged = runs.run(NAME, "after").path
    assert damaged is not None
    (damaged.parent / "result").write_bytes(b"\x80")

    runs.run(NAME, "after")

    assert len(recordings) == 3
    assert not (path / "notes.txt").exists()
    assert [entry.name for entry in runs.folder.iterdir()] == [path.parent.name]


def test_a_run_that_is_given_up_says_why_each_time(runs: RecordedOnce) -> None:
    options = asked({**SMALL, "backend": "mha"})

    first, again = (runs.run("mixed-batches", "after", options) for _ in range(2))

    assert first.stopped is not None
    assert first == again


def test_the_digest_changes_with_every_source_and_nothing_else(tmp_path: Path) -> None:
    seen = {digest(source_files(tmp_path))}
    written = (
        "engine/serving/engine.py", "ingest/schema.py", "ingest/recording/forms/rows.py",
        "ingest/storage/store.py", "ingest/recording/forms/_rows.c",
    )  # fmt: skip
    for number, name in enumerate(written, 2):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
        seen.add(digest(source_files(tmp_path)))
        assert len(seen) == number
    (tmp_path / "engine" / "serving" / "engine.py").write_text("2")
    changed = digest(source_files(tmp_path))
    for name in ("engine/__pycache__/engine.pyc", "ingest/derive/steps.py", "app/cli/main.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")

    assert changed not in seen
    assert digest(source_files(tmp_path)) == changed
    assert digest(source_files(tmp_path), ["polars 3"]) != changed


@slow
def test_the_digest_covers_every_module_that_recording_loads(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LOADS, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {Path(line).resolve() for line in run.stdout.splitlines()}

    assert len(loaded) > 50
    assert loaded - set(source_files(ROOT)) - {ROOT / "src" / "stepscope" / "__init__.py"} == set()
    assert len(recording_digest()) == 16


def _killed(*_: object) -> bytes:
    raise KeyboardInterrupt
