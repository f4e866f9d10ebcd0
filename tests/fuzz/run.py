"""Start the harness for a target with its seeds and bounds, and say what came of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.targets import TARGETS, every_seed

EVERY = "every"
TIMEOUT_S = 20
RSS_LIMIT_MIB = 2048
MAX_LEN = 16 << 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether an input was found that hurts, what was printed, and the inputs."""

    failed: bool
    said: str
    inputs: tuple[Path, ...]

    @property
    def cause(self) -> str:
        """What ended it, without what libFuzzer says of each input that taught it something."""
        lines = self.said.splitlines()
        return "\n".join(line for line in lines if not line.startswith(("INFO", "#")))[-4000:]


def fuzz(name: str, folder: Path, *flags: str) -> Outcome:
    """Fuzz a target, or EVERY, until the flags end it; what it learns and finds is in `folder`."""
    corpus, found = folder / name / "corpus", folder / name / "found"
    for made in (corpus, found):
        made.mkdir(parents=True, exist_ok=True)
    seeds = every_seed() if name == EVERY else TARGETS[name].seeds()
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    bounds = (f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={RSS_LIMIT_MIB}", f"-max_len={MAX_LEN}")
    # A process begins with the peak of memory of the one that starts it, and a long run of tests
    # may be above the bound itself: hence a shell in between.
    run = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-m", "tests.fuzz.harness", name,
         *bounds, f"-artifact_prefix={found}/", *flags, str(corpus)],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    return Outcome(run.returncode != 0, run.stdout + run.stderr, tuple(sorted(found.iterdir())))
