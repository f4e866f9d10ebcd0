"""One import of a fleet as a process of its own, with what it took, and its workers ended."""

from __future__ import annotations

import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.analyzers.fleet.archive.partitions import asked_of

LOOK_EVERY_S = 0.2
QUERY = (
    "select traces.trace, count(*) as found from traces join findings on traces.key = findings.key "
    "where findings.severity = 'error' group by traces.trace order by found desc, traces.trace"
)


@dataclass(slots=True)
class _Seen:
    """What was seen of a process: the most memory that it and one of its workers had, and load."""

    own_kb: int = 0
    worker_kb: int = 0
    loads: list[float] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)

    def look(self, process_id: int) -> list[int]:
        """Look at it once; gives its workers."""
        self.loads.append(os.getloadavg()[0])
        self.own_kb = max(self.own_kb, _peak_kb(process_id))
        workers = _children(process_id)
        self.worker_kb = max(self.worker_kb, *map(_peak_kb, workers), 0)
        return workers


def imported(
    way: str, runs: Path, archive: Path, workers: int, damaged: Collection[str] = (),
    *, kill_every_s: float = 0,
) -> dict[str, Any]:  # fmt: skip
    """Import a folder into a new archive, and give a row of what it took and what came of it."""
    shutil.rmtree(archive, ignore_errors=True)
    command = [sys.executable, "-m", "stepscope.app", "fleet", runs.name, "--to", str(archive)]
    num_files = sum(file.is_file() for file in runs.rglob("*"))
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            [*command, "--workers", str(workers)], stdout=subprocess.PIPE, stderr=complaints,
            text=True, cwd=runs.parent,
        )  # fmt: skip
        assert process.stdout is not None
        with _watched(process.pid, kill_every_s) as seen, process.stdout:
            said = process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took_s = time.perf_counter() - began
        told = dict(line.split(None, 1) for line in said.splitlines())
        if "digest" not in told:
            complaints.seek(0)
            sys.exit(f"{way}: it ended with {process.returncode}: {complaints.read()[-300:]}")
    began = time.perf_counter()
    asked_of(archive, QUERY)
    query_s = time.perf_counter() - began
    sums = asked_of(
        archive, "select sum(num_bytes) as files, sum(sent_bytes) as sent from files"
    ).row(0)
    failed = set(asked_of(archive, "select path from failures")["path"].to_list())
    found = asked_of(archive, "select message from findings where code = 'COL001'")
    return {
        "way": way,
        "files": num_files,
        "s": took_s,
        "cpu_s": used.ru_utime + used.ru_stime,
        "load": statistics.fmean(seen.loads),
        "files_per_s": num_files / took_s,
        "files_mb": sums[0] / 1e6,
        "moved_mb": sums[1] / 1e6,
        "kills": len(seen.ended),
        "unreadable": len(failed),
        "unnamed": len(set(damaged) - failed),
        "COL001": len(found),
        "query_s": query_s,
        "own_gb": seen.own_kb / 1e6,
        "worker_gb": seen.worker_kb / 1e6,
        "digest": told["digest"][:12],
    }


@contextmanager
def _watched(process_id: int, kill_every_s: float) -> Iterator[_Seen]:
    """Look at a process now and then, and end one of its workers every so many seconds, if any."""
    seen = _Seen()
    is_over = threading.Event()
    chance = random.Random(2)

    def go_on() -> None:
        kill_s = time.monotonic() + kill_every_s
        while not is_over.wait(LOOK_EVERY_S):
            workers = seen.look(process_id)
            if kill_every_s and workers and time.monotonic() >= kill_s:
                kill_s = time.monotonic() + kill_every_s
                try:
                    os.kill(worker := chance.choice(workers), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                seen.ended.append(worker)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()


def _children(process_id: int) -> list[int]:
    try:
        told = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in told.split()]


def _peak_kb(process_id: int) -> int:
    """The most memory that a process has had so far; 0 of one that is gone."""
    try:
        lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
