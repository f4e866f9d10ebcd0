"""Rows given during or after `close()`, and those of forked processes, are counted."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import journal
from stepscope.ingest.recording.forms import rows
from stepscope.ingest.trace import Trace
from tests.ingest.recording.conftest import Script
from tests.tiers import slow

PATIENCE_S = 180
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")


@pytest.fixture(params=["compiled", "fallback"])
def functions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The functions that pack rows: those in C, and those without a compiler."""
    if request.param == "fallback":
        monkeypatch.setattr(rows, "compiled", None)
    return str(request.param)


@pytest.fixture
def rec_without_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """A recorder whose functions are those without a compiler."""
    monkeypatch.setattr(rows, "compiled", None)
    with Recorder(tmp_path / "run.trace", producer="test") as recorder:
        yield recorder


@pytest.fixture
def often() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


class Threads:
    """Threads that record until they are stopped, and count the rows that they gave."""

    def __init__(self, record: Callable[[int], int]) -> None:
        self._record, self._stop = record, threading.Event()
        self._num_rows = [0] * 3
        self._began = threading.Barrier(len(self._num_rows) + 1)
        self._threads = [
            threading.Thread(target=self._run, args=(place,))
            for place in range(len(self._num_rows))
        ]
        for thread in self._threads:
            thread.start()
        self._began.wait(PATIENCE_S)

    def _run(self, place: int) -> None:
        self._num_rows[place] += self._record(0)
        self._began.wait(PATIENCE_S)
        while not self._stop.is_set():
            self._num_rows[place] += self._record(self._num_rows[place])

    def stop(self) -> int:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return sum(self._num_rows)


FORMS = ("same text", "new texts", "several", "bulk", "two")


def recording(rec: Recorder, form: str) -> Callable[[int], int]:
    """A function that records some counters and returns how many."""
    more = rec.several("counters", ("ts_ns", "name", "value"), ("name",), ("ts_ns", "value"))[1]
    put = rec.bulk("counters", "ts_ns", "name", "value")
    begin, _ = rec.in_two("counters", ("ts_ns", "name", "value"), ("unit",))

    def record(row: int) -> int:
        if form == "several":
            more("x", [(row, 1.0), ([1, 2], 1.0)])
            return 3
        if form == "bulk":
            put([row, row], "x", 1.0)
            return 2
        if form == "two":
            begin(row, "x", 1.0)
        else:
            rec.counters(ts_ns=row, name="x" if form == "same text" else f"x{row}", value=1.0)
        return 1

    return record


@pytest.mark.usefixtures("functions", "often", "no_compactor")
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_threads_during_and_after_the_close_are_recorded_or_counted(
    rec: Recorder, form: str
) -> None:
    threads = Threads(recording(rec, form))

    rec.close()

    counted = Trace.open(rec.path).manifest.dropped.get("counters", 0)
    num_given = threads.stop()
    num_recorded = Trace.open(rec.path).num_rows("counters")
    assert num_recorded + rec.dropped.get("counters", 0) == num_given
    assert counted <= rec.dropped.get("counters", 0)


def test_rows_dropped_while_the_recorder_closes_are_in_the_manifest(
    rec: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rec.steps(step=1, ts_ns=1, kind="decode")
    compact = Recorder._compact

    def compact_slowly(self: Recorder) -> None:
        rec.steps(step=2, ts_ns=2, kind="decode")
        compact(self)

    monkeypatch.setattr(Recorder, "_compact", compact_slowly)

    rec.close()

    manifest = Trace.open(rec.path).manifest
    assert (manifest.dropped, manifest.tables) == ({"steps": 1}, {"steps": "partial"})


class Step:
    """What is packed as a number, and takes its time."""

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()

    def __index__(self) -> int:
        self.asked.set()
        self.answer.wait(PATIENCE_S)
        return 7


def packing(rec: Recorder, step: Step) -> threading.Thread:
    """A thread that has the place of a row and does not go on with it, as it waits for a step."""
    rec.steps(step=1, ts_ns=1, kind="decode")
    thread = threading.Thread(target=rec.steps, kwargs={"step": step, "ts_ns": 2, "kind": "decode"})
    thread.start()
    assert step.asked.wait(PATIENCE_S)
    return thread


def test_a_row_that_another_thread_is_packing_is_waited_for(
    rec_without_compiler: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rec, step = rec_without_compiler, Step()
    thread = packing(rec, step)

    def pause(_: float) -> None:
        step.answer.set()
        thread.join(PATIENCE_S)

    monkeypatch.setattr(journal, "PATIENCE_S", PATIENCE_S)
    monkeypatch.setattr(journal, "sleep", pause)
    rec.close()
    step.answer.set()
    thread.join(PATIENCE_S)

    assert Trace.open(rec.path).steps.collect()["step"].to_list() == [1, 7]
    assert rec.dropped == {}


def test_a_row_that_is_not_packed_when_the_recorder_has_closed_is_counted(
    rec_without_compiler: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rec, step = rec_without_compiler, Step()
    thread = packing(rec, step)
    monkeypatch.setattr(journal, "PATIENCE_S", 0.0)

    rec.close()
    step.answer.set()
    thread.join(PATIENCE_S)

    trace = Trace.open(rec.path)
    assert rec.dropped == trace.manifest.dropped == {"steps": 1}
    assert trace.steps.collect()["step"].to_list() == [1]


def test_late_rows_are_warned_of_once_and_rows_in_time_are_not(
    rec: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    rec.steps(step=1, ts_ns=1, kind="decode")
    rec.close()
    assert not caplog.records

    for step in range(5):
        rec.steps(step=step, ts_ns=1, kind="decode")
        rec.steps(step)  # without a required column

    (record,) = caplog.records
    assert (record.name, record.levelno) == ("stepscope", logging.WARNING)
    assert str(rec.path) in record.getMessage()
    assert rec.dropped == {"steps": 10}


@pytest.mark.usefixtures("often", "small_segments", "no_compactor")
def test_without_a_compiler_threads_that_record_several_rows_lose_none(
    rec_without_compiler: Recorder,
) -> None:
    rec = rec_without_compiler
    record = recording(rec, "several")

    def many() -> None:
        for row in range(1_000):
            record(row)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    rec.close()

    assert Trace.open(rec.path).num_rows("counters") == 12_000


@slow
@needs_fork
def test_rows_of_a_forked_child_are_counted_in_the_trace_and_warned_of_once(
    tmp_path: Path, script: Script
) -> None:
    engine = script(
        """
        import os, sys
        from stepscope.ingest.recorder import Recorder
        rec = Recorder(sys.argv[1], producer="engine")
        rec.steps(step=1, ts_ns=1, kind="decode")
        rec.steps(step=1, ts_ns="bad", kind="decode")
        for row in range(2):
            if (child := os.fork()) == 0:
                if row:
                    for step in range(5):
                        rec.steps(step=step, ts_ns=1, kind="decode")
                print(rec.dropped, flush=True)
                sys.exit()
            os.waitpid(child, 0)
        rec.close()
        print(rec.dropped)
        """,
        tmp_path / "run.trace",
    )

    out, err = engine.communicate(timeout=PATIENCE_S)

    assert out.decode().splitlines() == ["{}", "{'steps': 5}", "{'steps': 6}"]
    (warning,) = err.decode().splitlines()
    assert str(tmp_path / "run.trace") in warning
    assert Trace.open(tmp_path / "run.trace").manifest.dropped == {"steps": 6}


@needs_fork
def test_rows_of_a_forked_child_are_counted_in_a_trace_whose_engine_was_killed(
    tmp_path: Path, script: Script
) -> None:
    engine = script(
        """
        import os, sys
        from stepscope.ingest.recorder import Recorder
        rec = Recorder(sys.argv[1], producer="engine")
        rec.steps(step=1, ts_ns=1, kind="decode")
        if (child := os.fork()) == 0:
            rec.steps(step=2, ts_ns=1, kind="decode")
            os._exit(0)
        os.waitpid(child, 0)
        os.kill(os.getpid(), 9)
        """,
        tmp_path / "run.trace",
    )

    engine.communicate(timeout=PATIENCE_S)

    assert Trace.open(tmp_path / "run.trace").manifest.dropped == {"steps": 1}


@needs_fork
def test_a_child_forked_while_another_thread_writes_a_text_does_not_hang(
    tmp_path: Path, script: Script
) -> None:
    engine = script(
        """
        import os, signal, sys, threading
        from stepscope.ingest.recorder import Recorder
        rec = Recorder(sys.argv[1], producer="engine")
        locked, go = threading.Event(), threading.Event()
        def hold():
            with rec._journal.lock:
                locked.set()
                go.wait()
        threading.Thread(target=hold).start()
        locked.wait()
        if (child := os.fork()) == 0:
            signal.alarm(60)
            rec.steps(step=1, ts_ns=1, kind="decode", tag="new")
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        go.set()
        rec.close()
        """,
        tmp_path / "run.trace",
    )

    out, _ = engine.communicate(timeout=PATIENCE_S)

    assert out == b"0\n"
