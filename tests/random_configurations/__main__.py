"""`python -m tests.random_configurations`: random configurations of fixed variants, and of faults.

Prints for each scenario, or for each of its executors, how many were clean, what was found in the
others, and how much of that a count of its own confirms; in how many another run gave other rows,
and in how many something did not hold that holds in every sound run: blocks with one owner, one end
for each request, outputs as they are alone. With `--faults` it prints for each fault how many there
were in which it shows, and in how many of these one of its rules fired. Exits 1, with the commands
that repeat it, when something is not confirmed, not so again, does not hold, or is not found.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from stepscope.engine.scenarios import SCENARIOS, scenario
from tests.random_configurations.draw import configuration
from tests.random_configurations.faults import TRIED, trials
from tests.random_configurations.run import Outcome, run

HEAD = (
    "scenario", "executor", "configurations", "refused", "clean", "confirmed", "unconfirmed",
    "not so again", "broken", "by code",
)  # fmt: skip


def main() -> int:
    """Run so many configurations of the named scenarios, or of their faults, and print a table."""
    parser = argparse.ArgumentParser(prog="tests.random_configurations", description=__doc__)
    names = [each.name for each in SCENARIOS]
    parser.add_argument("--scenario", default="all", choices=("all", *names))
    parser.add_argument("--executor", help="one of the scenario's, or all; else its first")
    parser.add_argument("--count", type=int, help="configurations of each: 200; of a fault: 5")
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    parser.add_argument("--faults", action="store_true", help="the faults, where they show")
    arguments = parser.parse_args()
    chosen = names if arguments.scenario == "all" else [arguments.scenario]
    if arguments.faults:
        wrong = _faults(chosen, arguments.count or 5, arguments.seed)
    else:
        tried = [(name, each) for name in chosen for each in _executors(name, arguments.executor)]
        wrong = _fixed(tried, arguments.count or 200, arguments.seed)
    _print(*wrong, sep="\n")
    return int(bool(wrong))


def _executors(name: str, asked: str | None) -> tuple[str, ...]:
    """Which of a scenario's executors are tried: those that are asked for and that it has."""
    known = scenario(name).executors
    if asked is None:
        return known[:1]
    return known if asked == "all" else tuple(each for each in known if each == asked)


def _fixed(tried: list[tuple[str, str]], count: int, seed: int) -> list[str]:
    """Print a line for each scenario and executor; return what is wrong with any of their runs."""
    wrong: list[str] = []
    _print(*HEAD)
    for name, executor in tried:
        numbers = range(seed, seed + count)
        outcomes = [run(configuration(name, number, executor)) for number in numbers]
        _print(*_line(name, executor, outcomes))
        wrong += [each for outcome in outcomes for each in outcome.wrong]
    return wrong


def _line(name: str, executor: str, outcomes: list[Outcome]) -> tuple[str, ...]:
    judged = [each for outcome in outcomes for each in outcome.judged]
    ran = [outcome for outcome in outcomes if outcome.refusal is None]
    num_confirmed = sum(each.is_confirmed for each in judged)
    codes = Counter(each.finding.code for each in judged)
    numbers = (
        len(outcomes), len(outcomes) - len(ran), sum(not outcome.judged for outcome in ran),
        num_confirmed, len(judged) - num_confirmed,
        sum(bool(outcome.differs) for outcome in ran), sum(bool(outcome.broken) for outcome in ran),
    )  # fmt: skip
    by_code = ", ".join(f"{code} {number}" for code, number in sorted(codes.items()))
    return (name, executor, *map(str, numbers), by_code)


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
