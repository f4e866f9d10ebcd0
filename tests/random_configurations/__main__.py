"""`python -m tests.random_configurations`: random configurations of fixed variants, and of faults.

Prints for each scenario how many were clean, what was found in the others, and how much of that a
count of its own confirms. With `--faults` it prints for each fault how many there were in which it
shows, and in how many of these one of its rules fired. Exits 1, with the commands that repeat it,
when something is not confirmed, or not found.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from stepscope.engine.scenarios import SCENARIOS
from tests.random_configurations.draw import configuration
from tests.random_configurations.faults import TRIED, trials
from tests.random_configurations.run import Outcome, run

HEAD = ("scenario", "configurations", "refused", "clean", "confirmed", "unconfirmed", "by code")


def main() -> int:
    """Run so many configurations of the named scenarios, or of their faults, and print a table."""
    parser = argparse.ArgumentParser(prog="tests.random_configurations", description=__doc__)
    names = [each.name for each in SCENARIOS]
    parser.add_argument("--scenario", default="all", choices=("all", *names))
    parser.add_argument("--count", type=int, help="configurations of each: 200; of a fault: 5")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    parser.add_argument("--faults", action="store_true", help="the faults, where they show")
    arguments = parser.parse_args()
    chosen = names if arguments.scenario == "all" else [arguments.scenario]
    tell = _faults if arguments.faults else _fixed
    wrong = tell(chosen, arguments.count or (5 if arguments.faults else 200), arguments.seed)
    _print(*wrong, sep="\n")
    return int(bool(wrong))


def _fixed(names: list[str], count: int, seed: int) -> list[str]:
    """Print a line for each scenario; return what no count confirms."""
    unconfirmed: list[str] = []
    _print(*HEAD)
    for name in names:
        outcomes = [run(configuration(name, number)) for number in range(seed, seed + count)]
        _print(*_line(name, outcomes))
        unconfirmed += [each for outcome in outcomes for each in outcome.unconfirmed]
    return unconfirmed


def _line(name: str, outcomes: list[Outcome]) -> tuple[str, ...]:
    judged = [each for outcome in outcomes for each in outcome.judged]
    ran = [outcome for outcome in outcomes if outcome.refusal is None]
    num_confirmed = sum(each.is_confirmed for each in judged)
    codes = Counter(each.finding.code for each in judged)
    numbers = (
        len(outcomes), len(outcomes) - len(ran), sum(not outcome.judged for outcome in ran),
        num_confirmed, len(judged) - num_confirmed,
    )  # fmt: skip
    by_code = ", ".join(f"{code} {number}" for code, number in sorted(codes.items()))
    return (name, *map(str, numbers), by_code)


def _faults(names: list[str], count: int, seed: int) -> list[str]:
    """Print a line for each fault; return where it shows and none of its rules fired."""
    missed: list[str] = []
    _print("scenario", "fault", "found of those in which it shows")
    for fault in (each for each in TRIED if each.scenario in names):
        tried = trials(fault, count, seed)
        not_found = [each.configuration.command for each in tried if not each.is_found]
        _print(fault.scenario, fault.name, f"{len(tried) - len(not_found)} of {len(tried)}")
        missed += not_found
    return missed


def _print(*words: str, sep: str = "  ") -> None:
    sys.stdout.write(sep.join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
