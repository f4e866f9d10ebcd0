"""How long a user waits for an answer: start-up, and `check` of the samples.

Wall time in fresh processes, medians. What rules cost on long traces is told by `bench_rules`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RUNS = 5
SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"


def measure() -> list[dict[str, Any]]:
    """Return a row per command."""
    commands = [["--version"], *(["check", str(path)] for path in _samples())]
    return [
        {"what": " ".join(Path(word).name for word in command), "s": _median_s(command)}
        for command in commands
    ]


def _samples() -> list[Path]:
    return sorted(path for path in SAMPLES.iterdir() if path.suffix in {".trace", ".gz"})


def _median_s(command: list[str]) -> float:
    return statistics.median(_wall_s(command) for _ in range(RUNS))


def _wall_s(command: list[str]) -> float:
    began = time.perf_counter()
    whole = [sys.executable, "-m", "stepscope.app", *command]
    subprocess.run(whole, check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
