"""What a fleet costs: 2,000 rank files on 1 worker and on 2, killed, damaged; 1,024 ranks as one.

Files are of jobs of 8 ranks; every fourth job is made of what real profiles hold, cut to a tenth of
their events and named for another rank. `moved_mb` is what rules over several ranks were sent, of
`files_mb`. `killed` is 2 workers of which one is ended every 5 seconds, with 1% of the files
damaged; `unnamed` counts damaged files that the archive does not name. `query_s` is one lazy query
over the archive. The last row is one job of 1,024 ranks of which one goes another order.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepscope.analyzers.fleet.archive.partitions import asked_of
from tests.conftest import ROOT
from tests.ingest.derive.collectives.rank_jobs import Look, events, job

NUM_FILES, PER_JOB, NUM_RANKS = 2_000, 8, 1_024
KILL_EVERY_S = 5.0
REAL_EVENTS = 3_000
QUERY = (
    "select traces.trace, count(*) as found from traces join findings on traces.key = findings.key "
    "where findings.severity = 'error' group by traces.trace order by found desc, traces.trace"
)
_SAMPLES = (ROOT / "sample_traces", ROOT.parent / "shared" / "data" / "kineto")


def measure(num_files: int = NUM_FILES, num_ranks: int = NUM_RANKS) -> list[dict[str, Any]]:
    """Return a row for each way to import the files, and one for the large job."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = folder / "runs"
        write_fleet(runs, num_files)
        rows = [
            _imported("1 worker", runs, folder / "one", 1),
            _imported("2 workers", runs, folder / "two", 2),
        ]
        damaged = damage(runs, num_files // 100)
        calm = _imported("damaged", runs, folder / "damaged", 2, damaged)
        rows += [calm, _imported("killed", runs, folder / "killed", 2, damaged, kills=True)]
        large = write_job_of(folder / "large", num_ranks, {"swapped": 11})
        rows.append(_imported(f"{num_ranks:,} ranks", large, folder / "of ranks", 2))
    return rows


def write_fleet(folder: Path, num_files: int) -> None:
    """Write so many rank files in folders of a job each."""
    real = list(_real_profiles())
    for number in range(num_files // PER_JOB):
        into = folder / f"job{number:04}"
        if number % 4 == 3 and real:
            _write_real(into, *real[number // 4 % len(real)], number)
        else:
            write_job_of(into, PER_JOB, {"swapped": 7} if number % 40 == 0 else {}, number)


def write_job_of(folder: Path, num_ranks: int, last: dict[str, Any], seed: int = 0) -> Path:
    """Write a job of so many ranks, of which the last one looks otherwise."""
    folder.mkdir(parents=True)
    meetings = job(num_ranks, num_steps=12, ops=("allreduce", "broadcast"), seed=seed)
    for rank in range(num_ranks):
        look = Look(**last) if rank == num_ranks - 1 else Look()
        info = {"rank": rank, "world_size": num_ranks}
        shown = {"schemaVersion": 1, "distributedInfo": info}
        text = json.dumps({**shown, "traceEvents": events(meetings, rank, look)})
        (folder / f"rank{rank}.json").write_text(text)
    return folder


def _real_profiles() -> Iterator[tuple[dict[str, Any], list[Any]]]:
    for folder in _SAMPLES:
        for file in sorted(folder.glob("*.json.gz")):
            found = json.loads(gzip.decompress(file.read_bytes()))
            if isinstance(found, dict) and isinstance(found.get("traceEvents"), list):
                yield {k: v for k, v in found.items() if k != "traceEvents"}, found["traceEvents"]


def _write_real(folder: Path, top: dict[str, Any], every: list[Any], number: int) -> None:
    folder.mkdir(parents=True)
    for rank in range(PER_JOB):
        first = (number * PER_JOB + rank) * 101 % max(len(every) - REAL_EVENTS, 1)
        info = {"rank": rank, "world_size": PER_JOB}
        content = {
            **top, "distributedInfo": info, "traceEvents": every[first : first + REAL_EVENTS]
        }  # fmt: skip
        packed = gzip.compress(json.dumps(content).encode(), 1, mtime=0)
        (folder / f"rank{rank}.json.gz").write_bytes(packed)


def damage(folder: Path, num: int) -> set[str]:
    """Make so many files what nobody can read, and give their paths."""
    chance = random.Random(1)
    chosen = chance.sample(sorted(file for file in folder.rglob("*") if file.is_file()), num)
    for place, file in enumerate(chosen):
        file.write_bytes((b"", chance.randbytes(999), b'{"schemaVersion": 1}')[place % 3])
    return {str(file) for file in chosen}


@contextmanager
def _ending_workers(process: subprocess.Popen[str], kills: bool) -> Iterator[list[int]]:
    """End one worker of a process every few seconds."""
    ended: list[int] = []
    is_over = threading.Event()
    chance = random.Random(2)

    def go_on() -> None:
        while kills and not is_over.wait(KILL_EVERY_S):
            try:
                told = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
                ended.append(int(chance.choice(told.split())))
                os.kill(ended[-1], signal.SIGKILL)
            except (OSError, IndexError):
                continue

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield ended
    finally:
        is_over.set()
        thread.join()


def _imported(
    way: str, runs: Path, archive: Path, workers: int, damaged: Collection[str] = (),
    *, kills: bool = False,
) -> dict[str, Any]:  # fmt: skip
    command = [sys.executable, "-m", "stepscope.app", "fleet", str(runs), "--to", str(archive)]
    num_files = sum(file.is_file() for file in runs.rglob("*"))
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--workers", str(workers)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, cwd=runs.parent,
    )  # fmt: skip
    assert process.stdout is not None
    with _ending_workers(process, kills) as ended, process.stdout:
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took_s = time.perf_counter() - began
    told = dict(line.split(None, 1) for line in said.splitlines())
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
        "files_per_s": num_files / took_s,
        "files_mb": sums[0] / 1e6,
        "moved_mb": sums[1] / 1e6,
        "kills": len(ended),
        "unreadable": len(failed),
        "unnamed": len(set(damaged) - failed),
        "COL001": len(found),
        "query_s": query_s,
        "peak_gb": used.ru_maxrss / 1e6,
        "digest": told["digest"][:12],
    }
