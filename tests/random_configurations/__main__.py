"""`python -m tests.random_configurations`: random configurations of fixed variants, and of faults.

Prints for each scenario how many were clean, what was found in the others, and how much of that a
count of its own confirms. Exits 1, with the commands that repeat it, when some is not confirmed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from stepscope.engine.scenarios import SCENARIOS
from tests.random_configurations.draw import configuration
from tests.random_configurations.run import Outcome, run

HEAD = ("scenario", "configurations", "refused", "clean", "confirmed", "unconfirmed", "by code")


def main() -> int:
    """Run so many configurations of the named scenarios, and print the table."""
    parser = argparse.ArgumentParser(prog="tests.random_configurations", description=__doc__)
    names = [each.name for each in SCENARIOS]
    parser.add_argument("--scenario", default="all", choices=("all", *names))
    parser.add_argument("--count", type=int, default=200, help="configurations of each")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    arguments = parser.parse_args()
    chosen = names if arguments.scenario == "all" else [arguments.scenario]
    unconfirmed: list[str] = []
    _print(*HEAD)
    for name in chosen:
        seeds = range(arguments.seed, arguments.seed + arguments.count)
        outcomes = [run(configuration(name, seed)) for seed in seeds]
        _print(*_line(name, outcomes))
        unconfirmed += [each for outcome in outcomes for each in outcome.unconfirmed]
    _print(*unconfirmed, sep="\n")
    return int(bool(unconfirmed))


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


def _print(*words: str, sep: str = "  ") -> None:
    sys.stdout.write(sep.join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
