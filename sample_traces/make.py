"""Make the sample traces again: `make samples`.

The simulated ones are what these commands write, and a test compares them; the torch.profiler one
is a measurement, different every time (`make_torch_profiler.py`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from stepscope.app.cli import main

HERE = Path(__file__).resolve().parent

# Folder -> the arguments of `stepscope record` that make it.
SIMULATED = {
    "mix-admission-before.trace": ("mix-admission", "--variant", "before"),
    "mix-admission-after.trace": ("mix-admission", "--variant", "after"),
    "fcfs-preemption-before.trace": ("fcfs-preemption", "--variant", "before"),
    "fcfs-preemption-after.trace": ("fcfs-preemption", "--variant", "after"),
}


def make(folder: Path) -> int:
    """Record every simulated sample into `folder`; returns the exit code of the first failure."""
    for name, arguments in SIMULATED.items():
        code = main(["record", *arguments, "--force", "-o", str(folder / name)])
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(make(HERE))
