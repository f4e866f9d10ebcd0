"""How much of `stepscope record mix-admission` is spent recording.

The same run with and without a recorder, side by side, in CPU time of the engine's thread, which
other programs disturb least; medians. Opening and closing (which turns the journal into Parquet)
stand apart: they happen before the engine's first step and after its last one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from stepscope.engine.scenarios import scenario
from stepscope.ingest.recorder import Recorder

RUNS = 9


def measure(runs: int = RUNS) -> list[dict[str, Any]]:
    """Return a row for each variant: CPU milliseconds off, on, outside the run, and the share."""
    return [_measured(variant, runs) for variant in ("before", "after")]


def _measured(variant: str, runs: int) -> dict[str, Any]:
    mix = scenario("mix-admission")
    off: list[float] = []
    on: list[float] = []
    around: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(runs):
            off.append(_cpu_ms(partial(mix.record, variant, None)))
            out = Path(folder) / f"{number}.trace"
            spent: list[float] = []
            with _timing(spent, "__init__"), _timing(spent, "close"):
                whole = _cpu_ms(partial(mix.record, variant, out))
            around.append(sum(spent))
            on.append(whole - around[-1])
    without, with_it = statistics.median(off), statistics.median(on)
    return {
        "run": f"mix-admission {variant}",
        "without_ms": without,
        "recording_ms": with_it,
        "share_%": 100 * (with_it - without) / with_it,
        "open_and_close_ms": statistics.median(around),
    }


def _cpu_ms(run: Callable[[], object]) -> float:
    began = time.thread_time_ns()
    run()
    return (time.thread_time_ns() - began) / 1e6


@contextmanager
def _timing(spent_ms: list[float], method: str) -> Iterator[None]:
    """Add the CPU milliseconds of each call of a method of the recorder to `spent_ms`."""
    original = getattr(Recorder, method)

    def timed(*args: Any, **kwargs: Any) -> None:
        spent_ms.append(_cpu_ms(partial(original, *args, **kwargs)))

    with patch.object(Recorder, method, timed):
        yield
