"""`make fuzz`: every reader, or the named ones, for so many seconds each.

What was learned stays in the folder, so that the next run goes on from there. Exits 1 when an input
raises what is not an error of ours, takes too long or too much memory; the input is named.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from tests.fuzz.run import fuzz
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run targets one after the other."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="FORMAT", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=300, help="for each of them")
    parser.add_argument("--folder", type=Path, default=Path("out/fuzz"), help="what was learned")
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - TARGETS.keys():
        parser.error(f"no format {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    failed = False
    for name in arguments.targets or TARGETS:
        outcome = fuzz(name, arguments.folder, f"-max_total_time={arguments.seconds}")
        done = re.findall(r"^Done (\d+) runs", outcome.said, re.MULTILINE)
        print(f"{name}: {'FAILED' if outcome.failed else f'{done[-1]} runs, fine'}", flush=True)
        if outcome.failed:
            failed = True
            print(outcome.cause, *outcome.inputs, sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
