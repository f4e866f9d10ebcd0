"""What a step of a steady decode costs the scheduler's thread to record, and how large it is.

A step is its row, completed when it has ended, its batch and its outputs. `us` is the median over
15 runs of 400 steps, in CPU time of the thread. `one leaves, one comes` is a step in which the
batch changes; `in bulk` tells all rows of batch and outputs in columns, `row by row` one by one.
`bytes` is of Parquet a step, the closed trace by the number of steps.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow

NUM_STEPS = 400
NUM_RUNS = 15
RUNNING = (64, 256)
STEP_NS = 10_000_000
Step = Callable[[int, int], None]


def measure() -> list[dict[str, Any]]:
    """Return a row for each way of recording and number of running requests."""
    return [_measured(way, running) for running in RUNNING for way in WAYS]


def _measured(way: str, running: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        rec = Recorder(Path(folder) / "run.trace", producer="bench")
        step, numbers = WAYS[way](rec, running), count()
        costs = [_timed_us(step, numbers) for _ in range(NUM_RUNS)]
        rec.close()
        size = sum(file.stat().st_size for file in rec.path.rglob("*.parquet"))
    return {
        "what": way,
        "running": running,
        "µs": round(statistics.median(costs), 1),
        "bytes": round(size / next(numbers)),
    }


def _timed_us(step: Step, numbers: Iterator[int]) -> float:
    steps = [next(numbers) for _ in range(NUM_STEPS)]
    began = time.thread_time_ns()
    for number in steps:
        step(number, number * STEP_NS)
    return (time.thread_time_ns() - began) / NUM_STEPS / 1_000


def _name(number: int) -> str:
    return f"cmpl-{number:032x}-0"


def _timed_step(rec: Recorder, running: int) -> Callable[[Step], Step]:
    """Record the row of the step, too, as it begins and when it has ended."""
    names = (
        "step", "ts_ns", "kind", "num_prefill_reqs", "num_decode_reqs", "num_prefill_tokens",
        "num_decode_tokens", "token_budget", "num_waiting", "num_running", "kv_blocks_free",
        "kv_blocks_total",
    )  # fmt: skip
    begin, complete = rec.in_two("steps", names, ("dur_ns", "executed_path"))

    def around(batch: Step) -> Step:
        def step(number: int, ts_ns: int) -> None:
            opened = begin(number, ts_ns, "decode", 0, running, 0, running, 8192, 3, running, 9, 90)
            batch(number, ts_ns)
            complete(opened, STEP_NS - 1, "graph")

        return step

    return around


def _going_on(rec: Recorder, running: int) -> Step:
    batches = rec.batches()
    batches.whole(-1, 0, [BatchRow(_name(at), "prefill", 90, 0, 0, 90) for at in range(running)])

    def batch(number: int, ts_ns: int) -> None:
        batches.outputs(batches.again(number, ts_ns), ts_ns + STEP_NS - 1)

    return _timed_step(rec, running)(batch)


def _changing(rec: Recorder, running: int) -> Step:
    batches = rec.batches()
    batches.whole(-1, 0, [BatchRow(_name(at), "prefill", 90, 0, 0, 90) for at in range(running)])

    def batch(number: int, ts_ns: int) -> None:
        new = BatchRow(_name(number + running), "prefill", 90, 0, 0, 90)
        formed = batches.formed(number, ts_ns, [_name(number)], [new])
        batches.outputs(formed, ts_ns + STEP_NS - 1)

    return _timed_step(rec, running)(batch)


def _in_bulk(rec: Recorder, running: int) -> Step:
    put = rec.bulk(
        "batch_rows", "step", "ts_ns", "row", "request", "phase", "num_tokens", "num_computed"
    )
    put_outputs = rec.bulk("outputs", "step", "ts_ns", "request", "position", "source_step")
    requests, rows = [_name(at) for at in range(running)], list(range(running))

    def batch(number: int, ts_ns: int) -> None:
        computed = [90 + number + row for row in rows]
        put(number, ts_ns, rows, requests, "decode", 1, computed)
        put_outputs(number, ts_ns + STEP_NS - 1, requests, computed, number)

    return _timed_step(rec, running)(batch)


def _row_by_row(rec: Recorder, running: int) -> Step:
    record = rec.narrow(
        "batch_rows", "step", "ts_ns", "row", "request", "phase", "num_tokens", "num_computed"
    )
    output = rec.narrow("outputs", "step", "ts_ns", "request", "position", "source_step")
    requests = [_name(at) for at in range(running)]

    def batch(number: int, ts_ns: int) -> None:
        for row, request in enumerate(requests):
            record(number, ts_ns, row, request, "decode", 1, 90 + number)
        for row, request in enumerate(requests):
            output(number, ts_ns + STEP_NS - 1, request, number + row, number)

    return _timed_step(rec, running)(batch)


WAYS: dict[str, Callable[[Recorder, int], Step]] = {
    "the batch goes on": _going_on,
    "one leaves, one comes": _changing,
    "in bulk": _in_bulk,
    "row by row": _row_by_row,
}
