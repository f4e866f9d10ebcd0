"""A debug session over a million steps and 1.1e7 rows: opening, jumping, conditions, going back.

Each step a request comes, one is let in, four are in the batch, one ends, and one is told why it
waits. Memory is the peak of a process of its own; each figure but the first is the median of
several places.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stepscope.ingest.manifest import Manifest
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.bench import peak_gb

NUM_STEPS, NUM_PLACES = 1_000_000, 15
STEP_NS, ROWS_A_STEP = 1_000_000, 11
WAITED, BATCH, NUM_BLOCKS = 20, 4, 64
PROCESS = "from tests.bench.bench_debug import told; told({path!r})"


def measure(num_steps: int = NUM_STEPS) -> list[dict[str, Any]]:
    """Return one row for each process that opens the trace: seconds, GB, and ms for each move."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.trace"
        save_trace(long_run(num_steps), path)
        return [{"session": which, **_in_process(path)} for which in ("first", "again")]


def long_run(num_steps: int) -> Trace:
    """A run whose rows are in the order of time, counted as our recorder counts them."""
    step = np.arange(1, num_steps + 1)
    events = _rows(step, [(0, 0), (1, WAITED + BATCH), (4, WAITED)])
    blocks = _rows(step, [(2, WAITED + BATCH), (5, WAITED)])
    batch = _rows(step, [(6 + row, WAITED + row) for row in range(BATCH)])
    why = _rows(step, [(3, WAITED // 2)])
    tables = {
        "steps": pl.DataFrame({"step": step}).select(
            "step", ts_ns=pl.col("step") * STEP_NS, dur_ns=pl.lit(STEP_NS - 1),
            kind=pl.lit("decode"), num_decode_reqs=pl.lit(BATCH),
            num_waiting=WAITED + pl.col("step") % 7, kv_blocks_total=pl.lit(BATCH),
            seq=pl.col("step") * ROWS_A_STEP + 10,
        ),
        "lifecycle": events.select(
            "step", "ts_ns", "request", "seq", event=_by_place(["arrive", "finish", "admit"]),
        ),
        "allocations": blocks.select(
            "step", "ts_ns", "seq", resource=pl.lit("kv-block"), id=pl.col("number") % NUM_BLOCKS,
            op=_by_place(["release", "claim"]), owner="request",
        ),
        "decisions": why.select(
            "step", "ts_ns", "seq", subject_kind=pl.lit("request"), subject="request",
            verdict=pl.lit("deferred"), reason=pl.lit("too few blocks"),
            resource=pl.lit("kv-block"), needed=pl.lit(1), available=pl.lit(0),
        ),
        "batch_rows": batch.select(
            "step", "ts_ns", "seq", "request", row="place", phase=pl.lit("decode"),
            num_tokens=pl.lit(1), num_computed=pl.lit(9), prompt_len=pl.lit(9),
        ),
    }  # fmt: skip
    every = np.sort(np.concatenate([rows["seq"].to_numpy() for rows in tables.values()]))
    counted = {
        name: rows.with_columns(seq=1 + np.searchsorted(every, rows["seq"].to_numpy()))
        for name, rows in tables.items()
    }
    return Trace.from_tables(counted, Manifest(producer="bench"))


def _rows(step: np.ndarray[Any, Any], each: list[tuple[int, int]]) -> pl.DataFrame:
    """Of every step some rows: at a place in its order, of the request that came steps before."""
    places = np.tile(np.arange(len(each)), len(step))
    orders, befores = (np.array(column) for column in zip(*each, strict=True))
    steps = np.repeat(step, len(each))
    rows = pl.DataFrame(
        {
            "step": steps, "place": places, "number": steps - befores[places],
            "seq": steps * ROWS_A_STEP + orders[places],
        }
    ).filter(pl.col("number") > 0)  # fmt: skip
    return rows.with_columns(ts_ns=pl.col("step") * STEP_NS, request=pl.format("req-{}", "number"))


def _by_place(names: list[str]) -> pl.Expr:
    return pl.col("place").replace_strict(range(len(names)), names, return_dtype=pl.String)


def _in_process(path: Path) -> dict[str, Any]:
    code = PROCESS.format(path=str(path))
    cache = {"STEPSCOPE_CACHE": str(path.parent / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **cache},
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def told(path: str) -> None:
    """Open a debugger on a trace, use it, and print what that took as JSON."""
    from stepscope.app.debug.commands import run  # noqa: PLC0415 - imports are no part of it
    from stepscope.app.debug.debugger import Debugger  # noqa: PLC0415 - imports are no part of it
    from stepscope.app.debug.why import why  # noqa: PLC0415 - imports are no part of it

    began, began_cpu = time.perf_counter(), time.process_time()
    debugger = Debugger(Trace.open(Path(path), cached=True))
    figures: dict[str, float] = {"open_s": time.perf_counter() - began}
    figures["open_cpu_s"] = time.process_time() - began_cpu
    figures["open_gb"] = peak_gb()
    steps = random.Random(1).choices(debugger.moments.steps, k=NUM_PLACES)

    def at_each(call: Callable[[], object]) -> float:
        return statistics.median(_ms(debugger.goto, str(step)) + _ms(call) for step in steps)

    def asked_why() -> None:
        why(debugger.session, (debugger.session.state.waiting or ())[WAITED // 2])

    run(debugger, "break steps: num_waiting = 26")
    figures["first_goto_ms"] = _ms(debugger.goto, "100%") + _ms(debugger.session.left_out)
    figures["goto_ms"] = at_each(debugger.session.left_out)
    figures["detail_ms"] = at_each(debugger.session.detail)
    figures["first_why_ms"] = _ms(asked_why)
    figures["why_ms"] = at_each(asked_why)
    figures["stepi_ms"] = at_each(lambda: run(debugger, "stepi"))
    figures["condition_ms"] = statistics.median(
        _ms(debugger.find, f"steps: num_waiting > {number} and dur_ns > 0")
        for number in range(20, 27)
    )
    figures["finish_ms"] = _ms(debugger.find, "finish")
    figures["watch_ms"] = _ms(debugger.find, "block 5")
    figures["rc_ms"] = at_each(debugger.reverse)
    figures["state_ms"] = at_each(lambda: run(debugger, "state"))
    figures["peak_gb"] = peak_gb()
    print(json.dumps({name: round(figure, 3) for name, figure in figures.items()}))


def _ms(call: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    call(*arguments)
    return (time.perf_counter() - began) * 1e3
