"""`make fuzz`: windows of trace events read in one pass in C, and by decoding each, must be alike.

The same seed makes the same windows. Exits 1 at the first that is read otherwise, and prints it.
With --sanitize the pass in C is built once more, with address and undefined-behaviour sanitizers.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from stepscope.ingest.readers.chrome import decode
from stepscope.ingest.readers.chrome.frames import Events
from tests.conftest import ROOT
from tests.fuzz.sanitizers import can_sanitize, sanitized, use_sanitized
from tests.fuzz.windows import Windows, real_events

TOGETHER = 100
"""Windows that are decoded at once: decoding one costs as much as scanning ten."""
_PROFILES = ROOT.parent / "shared" / "data" / "kineto"


@dataclass(slots=True)
class Tally:
    """How many windows there were, how many were read in one pass, and the first read otherwise."""

    num_windows: int = 0
    num_scanned: int = 0
    difference: bytes | None = None


def compare(windows: Iterator[bytes], num: int, seconds: float | None = None) -> Tally:
    """Read so many windows both ways, or as many as there is time for, up to a difference."""
    ends = time.monotonic() + seconds if seconds is not None else None
    tally = Tally()
    while tally.num_windows < num and not (ends and time.monotonic() > ends):
        made = list(islice(windows, min(TOGETHER, num - tally.num_windows)))
        scanned = [(each, found) for each in made if (found := decode.scanned(each))]
        tally.num_windows += len(made)
        tally.num_scanned += len(scanned)
        if scanned and not _are_alike(scanned):
            tally.difference = next(
                (each for each in scanned if not _are_alike([each])), scanned[0]
            )[0]
            break
    return tally


def _are_alike(scanned: list[tuple[bytes, Events]]) -> bool:
    expected = decode.decoded(b",".join(window for window, _ in scanned))
    if expected is None:
        return False
    return expected.whole().equals(pl.concat([found.whole() for _, found in scanned]))


def windows_of(seed: int) -> Windows:
    """Windows made of the events of all samples, and of real profiles where they are at hand."""
    return Windows(real_events([_PROFILES]), seed)


def main() -> int:
    """Compare as many windows as are asked for, or for so long."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.differential", description=__doc__)
    parser.add_argument("--windows", type=int, default=1_000_000, help="at most so many")
    parser.add_argument("--seconds", type=float, help="at most for so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true", help="build with sanitizers")
    asked = parser.parse_args()
    if asked.sanitize:
        if not can_sanitize():
            print("windows: not sanitized: there is no gcc with libasan here")
            return 0
        others = [argument for argument in sys.argv[1:] if argument != "--sanitize"]
        with TemporaryDirectory() as folder:
            run = sanitized(Path(folder), "-m", "tests.fuzz.differential", *others)
        print(run.stdout + run.stderr, end="")
        return run.returncode
    built = use_sanitized()
    if not decode.IS_COMPILED:
        print("windows: the pass in C is not compiled here")
        return 0
    tally = compare(windows_of(asked.seed), asked.windows, asked.seconds)
    build = " (address and undefined-behaviour sanitizers)" if built else ""
    outcome = "FAILED" if tally.difference is not None else "fine"
    counted = f"{tally.num_windows:,} made, {tally.num_scanned:,} read in one pass"
    print(f"windows: {counted}, {outcome}{build}")
    if tally.difference is not None:
        print(f"read otherwise: {tally.difference!r}")
    return int(tally.difference is not None)


if __name__ == "__main__":
    sys.exit(main())
