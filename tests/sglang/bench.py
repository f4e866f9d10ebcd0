"""Print what recording costs a scheduler of SGLang: `python -m tests.sglang.bench [WORD]`.

Two schedulers take turns, round by round, one of them recorded; each is a process of its own, and
waits while the other runs. The median of the rounds counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.sglang.bench_hooks import KINDS, LOADS, PLAIN, RECORDED

NUM_ROUNDS = 9
STEPS = 40
Took = dict[str, float]


class Served:
    """A scheduler in a process of its own."""

    def __init__(self, kind: str, number: int, folder: Path) -> None:
        self.kind, self.rounds = kind, list[Took]()
        script = Path(__file__).with_name("bench_hooks.py")
        with (folder / f"{kind}.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(script), kind, str(number), str(folder / "a.trace")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "STEPSCOPE_TRACE": ""},
            )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._told = self._process.stdin, self._process.stdout
        if not self._told.readline():
            sys.exit((folder / f"{kind}.log").read_text()[-2000:])

    def round(self) -> None:
        """Take a round of steps."""
        self._asked.write(f"{STEPS}\n")
        self._asked.flush()
        self.rounds.append(json.loads(self._told.readline()))

    def of(self, what: str) -> float:
        """The median of the rounds, of the first of which nothing is said."""
        return median(each[what] for each in self.rounds[1:])

    def close(self) -> None:
        """Let it end."""
        self._asked.close()
        self._process.wait()


def line(number: int, folder: Path) -> str:
    """What one load takes with and without."""
    served = {kind: Served(kind, number, folder) for kind in KINDS}
    for turn in range(NUM_ROUNDS):
        for kind in KINDS if turn % 2 else reversed(KINDS):
            served[kind].round()
    for each in served.values():
        each.close()
    plain, recorded = (served[kind].of("step_us") for kind in (PLAIN, RECORDED))
    ours = served[RECORDED].of("ours_us")
    more = recorded - plain
    return (
        f"{LOADS[number].name}: the scheduler's calls take {plain:,.0f} µs a step; recorded, "
        f"{more:+,.0f} µs ({more / plain:+.1%}), of which our functions take {ours:,.0f} µs "
        f"({ours / plain:.1%})"
    )


def lines(only: str = "") -> Iterator[str]:
    """A line for each load whose name has `only`."""
    for number, load in enumerate(LOADS):
        if only in load.name:
            with tempfile.TemporaryDirectory() as folder:
                yield line(number, Path(folder))


if __name__ == "__main__":
    for told in lines(*sys.argv[1:2]):
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()
