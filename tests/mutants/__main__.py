"""Print which random mutants of the product the tests let live.

    python -m tests.mutants --num 60 --seed 42

One run of the tests, on a clone of the last commit with a probe at each place, shows which tests
reach it. Then each mutant is tried on those alone, until one fails. A place that no test reaches
lives. Tests that fail without any mutant, as they look at the source, are left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.conftest import ROOT
from tests.mutants.draw import Mutant, draw, mutated, probed

QUICK = ("-m", "not slow")
PROBE = '__import__("stepscope._probe", fromlist=["hit"]).hit'
PROBE_MODULE = '''"""Where the tests come by."""

import os

_seen = set()


def hit(number):
    """Write down that the current test reaches a place."""
    key = number, os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    if key not in _seen:
        _seen.add(key)
        with open(f"{os.environ['STEPSCOPE_PROBES']}/{os.getpid()}", "a") as file:
            file.write(f"{number}\\t{key[1]}\\n")
'''
MOST_SECONDS = 1_800
"""How long the tests of one mutant may take: one that hangs is killed as well."""


class Clone:
    """A clone of the last commit, with what was compiled here, in which tests can be run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.root = folder / "stepscope"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.root)], check=True)
        for built in (path for name in ("app", "ingest") for path in (ROOT / name).rglob("*.so")):
            shutil.copy2(built, self.root / built.relative_to(ROOT))
        if (ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())

    def pytest(
        self, *arguments: str, probes: Path | None = None, most_s: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run tests; raises `TimeoutExpired` where they take longer."""
        names = {"PYTHONPATH": f"{self.root / 'src'}", "CI": "1", "POLARS_MAX_THREADS": "1"}
        names |= {"POLARS_ENGINE_AFFINITY": "in-memory"}
        names |= {"STEPSCOPE_PROBES": str(probes)} if probes else {}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=self.root, env={**os.environ, **names}, check=False, capture_output=True,
            text=True, timeout=most_s,
        )  # fmt: skip


def reached(mutants: Sequence[Mutant], clone: Clone, tests: Sequence[str]) -> dict[int, list[str]]:
    """Return the passing tests that reach each mutant's place; raises `SystemExit` if none ran."""
    probes = clone.root.parent / "probes"
    probes.mkdir()
    (clone.root / "src" / "stepscope" / "_probe.py").write_text(PROBE_MODULE)
    by_file: defaultdict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    for name, here in by_file.items():
        file = clone.root / name
        file.write_bytes(probed(file.read_bytes(), here, PROBE))
    # Tests that a test writes and runs in a folder of its own reach places too.
    known = set(clone.pytest("--collect-only", "-q", *tests).stdout.splitlines())
    run = clone.pytest("-n", "auto", "-rfE", *tests, probes=probes)
    if run.returncode not in {0, 1}:
        raise SystemExit(f"the tests did not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    failed = {
        line.split()[1] for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    }
    passing = known - failed
    found: defaultdict[int, set[str]] = defaultdict(set)
    for line in (line for file in probes.iterdir() for line in file.read_text().splitlines()):
        number, _, test = line.partition("\t")
        if test in passing:
            found[int(number)].add(test)
    return {number: sorted(names) for number, names in found.items()}


def is_killed(clone: Clone, mutant: Mutant, tests: Iterable[str]) -> bool:
    """Whether one of the tests fails on a mutant, those beside its file first."""
    file = clone.root / mutant.file
    source = file.read_bytes()
    beside = f"tests/{Path(mutant.file).parent.as_posix()}/"
    listed = clone.root.parent / "tests.txt"
    listed.write_text("\n".join(sorted(tests, key=lambda test: not test.startswith(beside))))
    file.write_bytes(mutated(source, mutant))
    try:
        run = clone.pytest("-x", f"@{listed}", most_s=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_bytes(source)
    if run.returncode not in {0, 1}:
        raise RuntimeError(f"the tests of {mutant} did not run:\n{run.stdout[-2000:]}")
    return run.returncode == 1


def main() -> None:
    """Draw mutants, try them, and print those that live."""
    parser = argparse.ArgumentParser("tests.mutants", description=__doc__)
    parser.add_argument("--num", type=int, default=60, help="how many mutants (60)")
    parser.add_argument("--seed", type=int, default=1, help="which mutants are drawn (1)")
    parser.add_argument("--all", action="store_true", help="with the slow tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("tests", nargs="*", help="only these tests (all)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as named:
        first, *others = (Clone(Path(named) / str(number)) for number in range(asked.jobs + 1))
        mutants = draw(first.root, asked.num, asked.seed)
        tests = reached(mutants, first, [*(() if asked.all else QUICK), *asked.tests])
        clones: SimpleQueue[Clone] = SimpleQueue()
        for clone in others:
            clones.put(clone)

        def attempt(mutant: Mutant) -> bool:
            clone = clones.get()
            try:
                here = tests.get(mutant.number, [])
                return bool(here) and is_killed(clone, mutant, here)
            finally:
                clones.put(clone)

        num_killed = 0
        with ThreadPoolExecutor(asked.jobs) as pool:
            for mutant, killed in zip(mutants, pool.map(attempt, mutants), strict=True):
                num_killed += killed
                num_tests = len(tests.get(mutant.number, ()))
                outcome = "killed" if killed else f"lives ({num_tests} tests reach it)"
                print(f"{outcome:30} {mutant}", flush=True)
    print(f"{num_killed} of {len(mutants)} killed")


if __name__ == "__main__":
    main()
