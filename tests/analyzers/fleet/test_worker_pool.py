"""Workers are processes: they die, hang and are ended, and whoever asked hears of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.analyzers.fleet.messages import Answer, Died, Digests, Place, ToDigest
from stepscope.analyzers.fleet.worker_loop import NAME, framed
from stepscope.analyzers.fleet.worker_pool import MOST_STARTS, WorkerPool
from stepscope.ingest.errors import StepscopeError
from tests.tiers import slow

PATIENCE_S = 180


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(2, timeout_s=PATIENCE_S)
    yield made
    made.close()


@pytest.fixture
def endless(tmp_path: Path) -> ToDigest:
    """A file that is never read to its end: as large as files may be, and all holes."""
    file = tmp_path / "holes"
    with file.open("wb") as opened:
        opened.truncate(1 << 42)
    return digest_of(file)


def digest_of(*files: Path) -> ToDigest:
    return ToDigest(tuple(Place(os.fsencode(file)) for file in files))


def answers(pool: WorkerPool, num: int) -> dict[int, Answer]:
    told: dict[int, Answer] = {}
    ends_s = time.monotonic() + PATIENCE_S
    while len(told) < num and time.monotonic() < ends_s:
        told |= dict(pool.wait(1.0))
    return told


def test_workers_that_are_ended_take_their_tasks_alone(
    pool: WorkerPool, endless: ToDigest, tmp_path: Path
) -> None:
    (tmp_path / "small").write_text("few")
    pool.submit(1, endless)
    pool.submit(2, digest_of(tmp_path / "small"))
    (first,) = answers(pool, 1).items()
    assert first[0] == 2
    assert isinstance(first[1], Digests)

    for worker in pool.process_ids():
        os.kill(worker, signal.SIGKILL)
        os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)  # until then it may be handed a task

    assert answers(pool, 1) == {1: Died("was ended by SIGKILL, perhaps for want of memory")}
    pool.submit(3, digest_of(tmp_path / "small"))
    assert answers(pool, 1) == {3: first[1]}


def test_a_task_that_takes_too_long_is_ended(endless: ToDigest) -> None:
    pool = WorkerPool(1, timeout_s=0.2)
    pool.submit(1, endless)

    assert answers(pool, 1) == {1: Died("took longer than 0.2 s", is_final=True)}
    pool.close()


def test_workers_end_with_the_pool(pool: WorkerPool, endless: ToDigest) -> None:
    pool.submit(1, endless)
    (worker,) = pool.process_ids()

    pool.close()

    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


@slow
def test_a_worker_ends_as_its_stdin_does_and_prints_answers_alone(tmp_path: Path) -> None:
    (tmp_path / "small").write_text("few")

    run = subprocess.run(
        [sys.executable, "-P", "-m", NAME], input=framed(b"\xc1"), capture_output=True, check=False
    )

    assert run.stdout == framed(b"ready")
    assert run.returncode == 1


def test_workers_that_never_start_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.analyzers.fleet.worker_pool.sys.executable", "/bin/false")
    pool = WorkerPool(2, timeout_s=PATIENCE_S)
    pool.submit(1, ToDigest(()))

    with pytest.raises(StepscopeError, match=f"no worker starts: {MOST_STARTS} in a row ended"):
        answers(pool, 1)
    pool.close()
