"""The files of a fleet: rank files in folders of a job each, some of them real, some damaged."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.ingest.derive.collectives.rank_jobs import Look, events, job

PER_JOB = 8
REAL_EVENTS = 3_000
_SAMPLES = (ROOT / "sample_traces", ROOT.parent / "shared" / "data" / "kineto")


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


def write_damaged(folder: Path, of: Path, num: int) -> set[str]:
    """Write the same files but for so many that nobody can read, and give their paths below."""
    shutil.copytree(of, folder)
    chance = random.Random(1)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    chosen = chance.sample(files, num)
    for place, file in enumerate(chosen):
        file.write_bytes((b"", chance.randbytes(999), b'{"schemaVersion": 1}')[place % 3])
    return {str(file.relative_to(folder.parent)) for file in chosen}
