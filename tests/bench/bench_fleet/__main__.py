"""Some of what `bench_fleet` measures, each printed as soon as it is."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.bench import bench_fleet
from tests.bench.bench_fleet import KILL_EVERY_S, NUM_FILES, NUM_RANKS, WAYS, measured


def main() -> None:
    """Measure the named ways, and print a line for each value."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.bench_fleet", description=bench_fleet.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("ways", nargs="+", choices=WAYS, metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--folder", type=Path, required=True, help="where the files are, and stay")
    parser.add_argument("--files", type=int, default=NUM_FILES, metavar="N")
    parser.add_argument("--ranks", type=int, default=NUM_RANKS, metavar="N")
    parser.add_argument("--kill-every", type=float, default=KILL_EVERY_S, metavar="SECONDS")
    given = parser.parse_args()
    folder = given.folder.resolve()
    for row in measured(given.ways, folder, given.files, given.ranks, given.kill_every):
        for name, value in row.items():
            print(f"{name:12}{value:.3g}" if isinstance(value, float) else f"{name:12}{value}")
        print(flush=True)


if __name__ == "__main__":
    main()
