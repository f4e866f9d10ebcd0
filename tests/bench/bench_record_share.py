"""How much of `stepscope record mix-admission` is spent recording.

The same run with and without a recorder, side by side, so that a noisy machine disturbs both.
Closing is counted apart: it happens after the engine's last step.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from stepscope.engine.scenarios import scenario

RUNS = 7


def measure(runs: int = RUNS) -> list[dict[str, Any]]:
    """Return one row: seconds with and without recording (medians), and the share in percent."""
    mix = scenario("mix-admission")
    plain_s: list[float] = []
    recorded_s: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(runs):
            began = time.perf_counter()
            mix.record("before", None, record=False)
            plain_s.append(time.perf_counter() - began)
            began = time.perf_counter()
            mix.record("before", Path(folder) / f"{number}.trace")
            recorded_s.append(time.perf_counter() - began)
    off, on = statistics.median(plain_s), statistics.median(recorded_s)
    share = 100 * (on - off) / on
    return [{"run": "mix-admission before", "off_s": off, "on_s": on, "recording_%": share}]
