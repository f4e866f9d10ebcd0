"""A session that opens from its index says what one says that reads all rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import pytest

from stepscope.app.debug import Session
from stepscope.app.debug.held import index_files
from stepscope.app.debug.held.index import Made, bounds_in, made_in_memory
from stepscope.app.debug.moments import Moments
from stepscope.app.timeline.lanes.bounds import bounds_of
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.storage import cache as storage_cache
from stepscope.ingest.storage.cache import Cache, users_cache
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SAMPLES = ("fcfs-preemption-before", "mix-admission-before", "vllm_crowd", "vllm_prefixes")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of the test's own, into which even the smallest trace is worth to be put."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(index_files, "WORTH_BYTES", 0)
    found = users_cache()
    assert found is not None
    return found


def made_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, whoever makes an index fails."""

    def fail(*_: object) -> NoReturn:
        raise AssertionError("made again")

    monkeypatch.setattr(Made, "parts", fail)


def said(trace: Trace, rank: int | None = None) -> Iterator[Any]:
    """All that a session says at each step, and on the way by changes."""
    session = Session(trace, rank)
    yield session.moments.steps, session.moments.event_bounds
    while session.next():
        yield session.position, session.state, session.left_out()
    for _ in range(50):
        session.back("seq")
        yield (
            session.position,
            session.state.as_dict(),
            session.moments.forming_at(session.position),
        )
    yield session.verify()


def test_a_trace_that_another_process_still_compacts_opens_and_no_index_of_it_is_made(
    tmp_path: Path, sample_traces: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.trace"
    shutil.copytree(sample_traces / "fcfs-preemption-before.trace", path)
    trace = Trace.open(path, cached=True)
    (path / "steps" / ".000000.parquet.1.tmp").touch()
    is_file = Path.is_file

    def found_and_gone(file: Path) -> bool:
        found = is_file(file)
        if file.suffix == ".tmp":
            file.unlink()
        return found

    monkeypatch.setattr(Path, "is_file", found_and_gone)

    assert Session(trace).moments.steps
    assert cache.entries() == []


@slow
@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_said_from_an_index_is_what_is_said_of_the_rows(
    sample_traces: Path, name: str, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sample_traces / f"{name}.trace"
    of_rows = list(said(Trace.open(path, cached=False)))
    assert cache.entries() == []

    first = list(said(Trace.open(path)))
    made_no_more(monkeypatch)
    again = list(said(Trace.open(path)))

    assert len(cache.entries()) == 1
    assert first == of_rows
    assert again == of_rows


def test_every_rank_has_an_index_of_its_own(tmp_path: Path, cache: Cache) -> None:
    path = tmp_path / "run.trace"
    steps = [{"rank": rank, "step": 7 + rank, "ts_ns": 5, "kind": "decode"} for rank in (0, 1)]
    orders = [
        {"rank": 1, "step": 8, "ts_ns": 5, "index": at, "request": name, "queue": "waiting"}
        for at, name in enumerate("ba")
    ]
    came = [{"rank": 1, "ts_ns": 1, "request": name, "event": "arrive"} for name in "ab"]
    left = [{"rank": 1, "ts_ns": 9, "request": "a", "event": "admit"}]
    save_trace(trace_of(steps=steps, queue_order=orders, lifecycle=[*came, *left]), path)

    for _ in range(2):
        first, other = (Session(Trace.open(path), rank) for rank in (0, 1))
        assert (first.moments.steps, first.state.waiting) == ([7], None)
        assert (other.moments.steps, other.state.waiting) == ([8], ("b", "a"))
    assert len(cache.entries()) == 2


@looped("rank", [0, 1])
def test_an_index_says_how_far_the_whole_trace_reaches(rank: int) -> None:
    steps = [
        {"rank": 0, "step": 1, "ts_ns": 100, "dur_ns": 7, "kind": "decode"},
        {"rank": 1, "step": 1, "ts_ns": 150, "dur_ns": 200, "kind": "decode"},
    ]
    came = [{"rank": 0, "ts_ns": 3, "request": "a", "event": "arrive"}]
    trace = trace_of(steps=steps, lifecycle=came)

    assert bounds_in(made_in_memory(trace, rank)) == bounds_of(trace) == (3, 350)


@slow
@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", SAMPLES)
def test_an_index_says_from_when_to_when_something_changed(
    sample_traces: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sample_traces / f"{name}.trace"
    expected = Moments(Trace.open(path), 0).event_bounds
    Session(Trace.open(path))
    monkeypatch.setattr(Moments, "_times", None)

    assert expected is not None
    assert Session(Trace.open(path)).moments.event_bounds == expected


def test_a_new_index_is_not_read_once_more(
    sample_traces: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Path] = []
    monkeypatch.setattr(storage_cache, "_verify", checked.append)
    path = sample_traces / "fcfs-preemption-before.trace"

    Session(Trace.open(path))
    assert not checked

    Session(Trace.open(path))
    assert checked == [cache.entries()[0].folder]


def test_a_trace_that_changed_has_another_index(tmp_path: Path, cache: Cache) -> None:
    path = tmp_path / "run.trace"
    save_trace(trace_of(steps=[{"step": 1, "ts_ns": 5, "kind": "decode"}]), path)
    assert Session(Trace.open(path)).moments.steps == [1]

    shutil.rmtree(path)
    save_trace(trace_of(steps=[{"step": 2, "ts_ns": 5, "kind": "decode"}]), path)

    assert Session(Trace.open(path)).moments.steps == [2]
    assert len(cache.entries()) == 2


@slow
@pytest.mark.parametrize("damage", ["cut", "gone", "flipped"])
def test_a_damaged_index_is_made_again(sample_traces: Path, cache: Cache, damage: str) -> None:
    path = sample_traces / "fcfs-preemption-before.trace"
    before = list(said(Trace.open(path)))
    (entry,) = cache.entries()
    file = max(entry.folder.glob("*.npy"), key=lambda each: each.stat().st_size)
    content = file.read_bytes()
    match damage:
        case "cut":
            file.write_bytes(content[:-9])
        case "gone":
            file.unlink()
        case "flipped":
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    assert list(said(Trace.open(path))) == before
    assert len(cache.entries()) == 1


def test_a_run_that_goes_on_has_no_index(tmp_path: Path, cache: Cache) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        for step in range(1, 4):
            rec.steps(step=step, ts_ns=step, kind="decode")
            assert Session(Trace.open(rec.path)).moments.steps == [*range(1, step + 1)]

    assert cache.entries() == []


def test_rows_that_were_replaced_have_no_index(sample_traces: Path, cache: Cache) -> None:
    trace = Trace.open(sample_traces / "fcfs-preemption-before.trace")

    early = pl.col("step") < 5
    frames = {name: trace.table(name).filter(early) for name in ("steps", "batch_rows")}
    fewer = trace.replacing(frames, trace.manifest)

    assert len(Session(fewer).moments.steps) < len(Session(trace).moments.steps)
    assert len(cache.entries()) == 1


@pytest.mark.usefixtures("cache")
def test_an_index_stays_while_a_session_reads_it(sample_traces: Path, cache: Cache) -> None:
    path = sample_traces / "fcfs-preemption-before.trace"
    session = Session(Trace.open(path))

    assert cache.clear()[0] == 0
    assert session.goto(step=session.moments.steps[-1])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written_is_no_matter(sample_traces: Path, cache: Cache) -> None:
    assert cache.unusable() is None
    cache.folder.chmod(0o500)

    assert Session(Trace.open(sample_traces / "fcfs-preemption-before.trace")).moments.steps
