"""Batches as a scheduler may form them, and what a trace says of them, row by row."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow
from stepscope.ingest.trace import Trace

COLUMNS = [
    "step", "ts_ns", "row", "request", "phase", "num_tokens", "num_computed", "prompt_len", "slot",
    "num_cached", "is_final_chunk",
]  # fmt: skip
Row = dict[str, Any]


def prefill(request: str, num_tokens: int = 8, **more: Any) -> BatchRow:
    """The row of a prompt that is computed in one step."""
    return BatchRow(request, "prefill", num_tokens, 0, 0, **more)


def batch_rows(trace: Path, *columns: str) -> list[tuple[Any, ...]]:
    return Trace.open(trace).batch_rows.sort("ts_ns", "row").select(columns).collect().rows()


def outputs(trace: Path) -> list[tuple[Any, ...]]:
    columns = ("step", "ts_ns", "request", "position", "source_step")
    return Trace.open(trace).outputs.select(columns).collect().rows()


class Truth:
    """What a scheduler did, row by row, told to a recorder by what changed."""

    def __init__(self, rec: Recorder, seed: int) -> None:
        self.random = random.Random(seed)
        self.batches = rec.batches()
        self.rows: list[Row] = []
        self.outputs: list[tuple[Any, ...]] = []
        self.running: dict[str, Row] = {}
        self.num_requests = 0

    def run(self, steps: Iterable[int]) -> Truth:
        """Form a batch in each step."""
        for step in steps:
            self.step(step)
        return self

    def step(self, step: int) -> None:
        """Let some leave, tell some anew, let some in; or change nothing."""
        draw = self.random
        for row in self.running.values():
            row |= {"phase": "decode", "num_computed": row["num_computed"] + row["num_tokens"],
                    "num_tokens": 1, "num_cached": None, "is_final_chunk": None}  # fmt: skip
            row["position"] = None if row["position"] is None else row["position"] + 1
        left, told = [], []
        if self.running and draw.random() < 0.3:
            left = draw.sample(list(self.running), draw.randint(1, len(self.running)))
        for request in left:
            del self.running[request]
        if self.running and draw.random() < 0.3:
            told.append(draw.choice(list(self.running)))
            self.running[told[0]] |= self._told()
        for _ in range(draw.choice((0, 0, 0, 1, 3))):
            self.num_requests += 1
            told.append(f"request {self.num_requests}")
            self.running[told[-1]] = {
                "prompt_len": draw.choice((None, 30)),
                "slot": draw.choice((None, 4)),
                **self._told(),
            }
        self.record(step, left, told)

    def record(self, step: int, left: list[str], told: list[str]) -> None:
        """Tell the recorder, and keep what readers have to see."""
        ts_ns = 1000 * step
        rows = [BatchRow(request, **self.running[request]) for request in told]
        if step == 0 or self.random.random() < 0.02:
            every = [BatchRow(request, **row) for request, row in self.running.items()]
            formed = self.batches.whole(step, ts_ns, every)
        elif left or told:
            formed = self.batches.formed(step, ts_ns, left, rows)
        else:
            formed = self.batches.again(step, ts_ns)
        gave = [request for request, row in self.running.items() if row["position"] is not None]
        without = self.random.sample(gave, len(gave) // 2) if self.random.random() < 0.2 else []
        self.batches.outputs(formed, ts_ns + 1, without)
        self.rows += [
            {"step": step, "ts_ns": ts_ns, "row": at, "request": request, **row}
            for at, (request, row) in enumerate(self.running.items())
        ]
        self.outputs += [
            (step, ts_ns + 1, request, self.running[request]["position"], step)
            for request in gave if request not in without
        ]  # fmt: skip

    def _told(self) -> Row:
        draw = self.random
        return {
            "phase": draw.choice(("prefill", "decode")), "num_tokens": draw.randint(1, 9),
            "num_computed": draw.randint(0, 99), "position": draw.choice((None, 0, 5)),
            "num_cached": draw.choice((None, 3)),
            "is_final_chunk": draw.choice((None, True, False)),
        }  # fmt: skip

    def assert_is(self, trace: Path) -> None:
        """Hold what readers see against what was done."""
        wanted = [tuple(row[name] for name in COLUMNS) for row in self.rows]
        assert batch_rows(trace, *COLUMNS) == wanted
        assert outputs(trace) == self.outputs
