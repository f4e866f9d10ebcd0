"""Random jobs of two ranks, and whether they are joined well.

`python -m tests.ingest.derive.collectives.random_jobs` draws them.

Windows share all, some or none of what the job did; its steps are alike to the nanosecond or not;
clocks agree, or are a little or whole steps apart. What is said of each is compared with what is
true. Prints how many were joined, by what, and exits 1 with the numbers of those joined wrongly.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from stepscope.ingest.derive.collectives.clocks import AGREE_NS
from stepscope.ingest.derive.collectives.pairings import BY_CLOCK
from stepscope.ingest.trace import Trace
from tests.ingest.derive.collectives.rank_jobs import (
    NOISE_US,
    Look,
    Plan,
    assert_nothing_is_wrong,
    clocks,
    open_job,
    period_us,
)

TAGS = (
    "",
    "step[DECODE bs=32]",
    "step[DECODE bs=32]",
    "ProfilerStep#{step}",
    "ProfilerStep#{step}",
)
SIZES = ((1,), (1, 2), (1, 2, 3, 4), (4, 3, 9, 2, 7, 5), (1, 1, 2, 2, 3, 3), (5, 1, 1, 1))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A job and how the files of its two ranks look."""

    plan: Plan
    looks: tuple[Look, Look]


def draw(number: int) -> Drawn:
    """The random job of that number, the same each time."""
    chance = random.Random(number)  # the same draw each time
    plan = _plan(chance)
    shared = chance.choice(("all", "some", "none"))
    first, second = _windows(chance, plan.num_steps, shared)
    look = Look(has_seq=chance.random() < 0.1, tags=chance.choice(TAGS))
    late_us = _late_us(chance, plan)
    places = range(plan.num_steps * plan.per_step if shared != "none" else 0)
    lacking = tuple(place for place in places if chance.random() < 0.02)
    look = replace(look, behind=chance.choice((0, 0, 0, 1, 3, plan.per_step - 1)))
    edges = [chance.choice((0, 0, 0, 1, 2, 5)) for _ in range(4)]
    looks = (
        replace(look, first_step=first[0], last_step=first[1], skipped=edges[0], cut=edges[1]),
        replace(look, first_step=second[0], last_step=second[1], skipped=edges[2], cut=edges[3],
                late_us=late_us, without=lacking),
    )  # fmt: skip
    return Drawn(plan, looks)


def _plan(chance: random.Random) -> Plan:
    is_regular = chance.random() < 0.5
    per_step = chance.choice((1, 2, 4, 6, 12))
    gaps = [chance.choice((0, 0, 40, 300, 1_700)) for _ in range(per_step)]
    return Plan(
        num_steps=chance.choice((4, 8, 16, 24)),
        per_step=per_step,
        seed=chance.randrange(10_000),
        late_rank=chance.choice((None, None, 0, 1)),
        jitter_us=0 if is_regular else chance.choice((3, 30, 300, 3_000)),
        noise_us=chance.choice((0, NOISE_US / 2)),
        sizes=chance.choice(SIZES),
        ops=chance.choice((("allreduce",), ("allreduce", "_allgather_base"))),
        gaps_us=tuple(gaps) if chance.random() < 0.7 else (0,),
        goes_on=chance.random() < 0.2,
    )


def _windows(
    chance: random.Random, num_steps: int, shared: str
) -> tuple[tuple[int, int], tuple[int, int]]:
    """From and to which step each of the ranks records."""
    if shared == "all":
        return ((0, num_steps - 1),) * 2
    if shared == "none":
        length = chance.randint(1, num_steps // 2)
        first = chance.randint(0, num_steps - 2 * length)
        second = chance.randint(first + length, num_steps - length)
        found = [(first, first + length - 1), (second, second + length - 1)]
    else:
        found = [_ordered(chance.randrange(num_steps), chance.randrange(num_steps)) for _ in "ab"]
    chance.shuffle(found)
    return found[0], found[1]


def _ordered(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _late_us(chance: random.Random, plan: Plan) -> float:
    kind = chance.choice(("none", "none", "small", "steps", "steps", "any"))
    steps = chance.choice((-2, -1, 1, 2, 3))
    return {
        "none": 0.0,
        "small": chance.uniform(-200, 200),
        "steps": steps * (period_us(plan) + chance.choice((0, 0, 7))),
        "any": chance.uniform(-50_000, 50_000),
    }[kind]


def told(drawn: Drawn) -> str:
    """By what the ranks of a job are joined, after a look at whether that is true; else why not.

    Raises AssertionError where something is said that is not true.
    """
    with TemporaryDirectory() as folder:
        trace = open_job(Path(folder), drawn.plan.meetings(), *drawn.looks)
        said = clocks(trace).get(1)
        if said is None or said["why_not"]:
            assert_nothing_is_wrong(trace, *drawn.looks)
            return "not joined"
        if said["paired_by"] == BY_CLOCK:
            _assert_sure_as_said(trace, drawn)
        else:
            assert_nothing_is_wrong(trace, *drawn.looks)
        return str(said["paired_by"])


def _assert_sure_as_said(trace: Trace, drawn: Drawn) -> None:
    """No clock is moved, and pairs are wrong only where clocks are as far apart as is said."""
    said = clocks(trace)[1]
    assert said["moved_ns"] == 0
    apart_ns = abs(drawn.looks[1].late_us - drawn.looks[0].late_us) * 1_000
    if apart_ns < said["unless_apart_ns"] - AGREE_NS:
        assert_nothing_is_wrong(trace, *drawn.looks)


def main() -> int:
    """Draw so many jobs and say what became of them."""
    parser = argparse.ArgumentParser(
        prog="tests.ingest.derive.collectives.random_jobs", description=__doc__
    )
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first of them")
    arguments = parser.parse_args()
    found: Counter[str] = Counter()
    wrong: list[int] = []
    for number in range(arguments.seed, arguments.seed + arguments.count):
        try:
            found[told(draw(number))] += 1
        except AssertionError:
            wrong.append(number)
    for how, num in found.most_common():
        sys.stdout.write(f"{num:6,}  {how}\n")
    sys.stdout.write(f"{len(wrong):6,}  wrong: {wrong[:40]}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
