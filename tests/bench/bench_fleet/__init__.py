"""What a fleet costs: 2,000 rank files on 1 worker and on 2, killed, damaged; 1,024 ranks as one.

Files are of jobs of 8 ranks; every fourth job is made of what real profiles hold, cut to a tenth of
their events and named for another rank. `moved_mb` is what rules over several ranks were sent, of
`files_mb`. `killed` is 2 workers of which one is ended every 5 seconds, with 1% of the files
damaged; `unnamed` counts damaged files that the archive does not name. `query_s` is one lazy query
over the archive. `own_gb` is the most memory of the process that was started, `worker_gb` of any
of its workers; `cpu_s` is that of all of them, and `load` how many wanted a core meanwhile. The
last row is one job of 1,024 ranks of which one goes another order.

`python -m tests.bench.bench_fleet one two --folder FOLDER` measures some of these, and leaves the
files there for the next call. They are the same wherever they are made, and so are the digests.
Where other programs keep the cores busy, a worker takes longer to start than it lives: give
`--kill-every` more seconds then.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.bench_fleet.fleet_files import write_damaged, write_fleet, write_job_of
from tests.bench.bench_fleet.one_import import imported

NUM_FILES, NUM_RANKS = 2_000, 1_024
KILL_EVERY_S = 5.0
WAYS = ("one", "two", "damaged", "killed", "ranks")


def measure(num_files: int = NUM_FILES, num_ranks: int = NUM_RANKS) -> list[dict[str, Any]]:
    """Return a row for each way to import the files, and one for the large job."""
    with tempfile.TemporaryDirectory() as name:
        return list(measured(WAYS, Path(name), num_files, num_ranks, KILL_EVERY_S))


def measured(
    ways: Sequence[str], folder: Path, num_files: int, num_ranks: int, kill_every_s: float
) -> Iterator[dict[str, Any]]:
    """Give a row for each of these ways; the files are made in `folder` unless they are there."""
    whole = folder / f"whole{num_files}" / "runs"
    for way in ways:
        archive = folder / f"{way}.archive"
        if way == "ranks":
            large = folder / "large" / f"job{num_ranks}"
            _once(large, lambda into: write_job_of(into, num_ranks, {"swapped": 11}))
            yield imported(f"{num_ranks:,} ranks", large, archive, 2)
            continue
        _once(whole, lambda into: write_fleet(into, num_files))
        if way in ("one", "two"):
            yield imported(
                f"{way} worker{'s' * (way == 'two')}", whole, archive, 1 + (way == "two")
            )
            continue
        with tempfile.TemporaryDirectory(dir=folder) as name:
            runs = Path(name, "runs")
            damaged = write_damaged(runs, whole, num_files // 100)
            every_s = kill_every_s if way == "killed" else 0
            yield imported(way, runs, archive, 2, damaged, kill_every_s=every_s)


def _once(folder: Path, write: Callable[[Path], object]) -> None:
    """Write what is not there; what was stopped on its way is begun anew, and never measured."""
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        write(part)
        part.rename(folder)
