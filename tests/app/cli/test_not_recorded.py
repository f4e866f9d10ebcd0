"""Without a table or a column every figure is equal, null, or said to be partial.

The cases are made of the schema: each table is taken out of a recording, and each of its columns is
set to null in every row. What is printed then is compared with the full recording: a figure may be
gone, null, equal, or beside a sentence that was not there before and says that it is partial. No
rule reports what it did not report, and none that reported something is clean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.views.partial import ON_EVERY_ROW, missing_values
from stepscope.engine.scenarios import scenario
from stepscope.ingest.columns import Column, Type
from stepscope.ingest.manifest import ClockInfo, ReadReport
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.analyzers.check.test_applicable import STILL_JUDGED
from tests.app.cli.figures import Figures, figures
from tests.engine.asked import asked
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

Case = tuple[str, str | None]
CASES: list[Case] = [
    (table.name, column) for table in TABLES for column in (None, *table.names) if column != "rank"
]
"""Each table as a whole, and each of its columns; no row is recorded without a rank."""
NAMES = ("request", "subject", "owner", "holder", "by_request")
NUM_ROWS = 8
SAMPLES = Path(__file__).parents[3] / "sample_traces"
ABOUT_ROWS = ("TRC006", "TRC007")
"""Rules that report rows which are missing or contradict each other."""
NOT_RECORDED = ("unknown", "waiting", "head", "not recorded", "not known", "task *", "task ?")
"""What a figure is called, or says, that is of what was not recorded."""
CLEAN_ALL_THE_SAME = {
    ("BAT004", "lifecycle"): "two rows of one request",
    ("BAT005", "lifecycle"): "tokens of a prefill that goes on",
    ("BAT006", "batch_rows.is_final_chunk"): "decode steps",
    ("BAT007", "segments.first_cu_len"): "the last length",
    ("COR010", "steps"): "times without any progress on cores",
    ("COR010", "tasks.step"): "times without any progress on cores",
    ("STV001", "batch_rows"): "time in the queue, by the events of requests",
    ("STV001", "batch_rows.is_recompute"): "time in batches counts as progress",
    ("STV001", "steps"): "time in the queue, by the events of requests",
    ("STV001", "steps.dur_ns"): "time in the queue, by the events of requests",
    ("STV001", "steps.step"): "time in the queue, by the events of requests",
    ("STV002", "decisions"): "who was admitted before whom",
    ("STV002", "lifecycle.step"): "who was admitted before whom",
    ("STV026", "decisions"): "who is in no batch while later requests finish",
    ("TRC003", "steps"): "without steps nothing was inferred of them",
} | STILL_JUDGED
"""What a rule that reported something still judges without a table or column, and is clean of."""
PERMITTED = {
    ("steps", r"summary\.gpu_|info\.end_ns"): "without steps a GPU's time is that of all spans",
    (".*", r"info\.(start|end)_ns|summary\.began_ns"): "of the rows that there are",
    ("steps", r"overview\.steps.*tokens"): "a step of one kind has no tokens of the other",
    ("spans", r"diff\.causes_ns\.(prefill|decode)"): "a run without kernels is split by its steps",
    (r"tasks\.(queued_ns|queue|dequeued_ns)", r"state.*\.ready"): "who is ready, in no queue",
    (r"batch_rows\.num_cached", r"(blame|diff)\..*(chunk|no-budget)"): "no hit looks like a chunk",
    ("collectives", "blame|diff|overview.SLO"): "what the batch did, whose time it was part of",
    ("outputs", r"blame\.slo.*num_tokens|(info|summary)\.tokens"): "as many as events say",
    (r"outputs\.is_placeholder", ".*"): "an engine without placeholders does not say so",
    (r"thread_phases\.thread", "state.*orchestrator"): "null is the orchestrator",
    ("slot_tokens", "state|why"): "a slot that nobody holds is known by its tokens",
    ("decisions", r"overview\.SLO, missed.*share"): "of the cause waiting, which is named",
    ("decisions", "check STV009"): "decisions say that those who wait are not ready",
    (r"batch_rows\.is_recompute", "overview.SLO, missed"): "of the cause prefill",
}
"""Figures that differ all the same, by table or column and by name, with the reason."""


def without(trace: Trace, table: str, column: str | None) -> Trace:
    """The trace without a table, as if it was never recorded, or with null in all of a column."""
    if column is None:
        left = {name: told for name, told in trace.manifest.tables.items() if name != table}
        frames = {each.name: trace.table(each.name) for each in TABLES if each.name != table}
        return Trace(frames, replace(trace.manifest, tables=left), trace.name)
    rows = trace.table(table)
    null = pl.lit(None, rows.collect_schema()[column]).alias(column)
    return trace.replacing({table: rows.with_columns(null)}, trace.manifest)


@dataclass(frozen=True)
class Recorded:
    """A recording, its figures, and whose waits are asked about."""

    trace: Trace
    subjects: tuple[str, ...]
    figures: Figures

    @classmethod
    def of(cls, trace: Trace, *, asks_why: bool) -> Recorded:
        """Take the figures of a recording, and of why two of its requests and a task wait."""
        held = trace.in_memory()
        if not asks_why:
            return cls(held, (), figures(held, held))
        names = held.lifecycle.select(pl.col("request").drop_nulls().unique().sort()).collect()
        middle = len(names) // 2
        subjects = (*names["request"][middle : middle + 2], *(["task 20"] * held.has("tasks")))
        return cls(held, subjects, figures(held, held, subjects))

    def has(self, table: str, column: str | None) -> bool:
        """Whether there is anything to take out."""
        rows = self.trace.table(table)
        return self.trace.has(table) if column is None else (
            rows.select(pl.col(column).is_not_null().any()).collect().item()
        )  # fmt: skip


def false_figures(recorded: Recorded, case: Case) -> Iterator[str]:
    """What is said without a table or column that is neither so, nor null, nor said partial."""
    found = figures(without(recorded.trace, *case), recorded.trace, recorded.subjects)
    full, missing = recorded.figures, ".".join(filter(None, case))
    for name, value in found.values.items():
        was, command = full.values.get(name), name.partition(".")[0]
        if value in (None, "", ()) or is_same(was, value) or says_so(name, value):
            continue
        if command == "check":
            yield from false_findings(missing, name.partition(".")[2], was, value)
        elif not found.said.get(command, set()) - full.said.get(command, set()) and not (
            is_permitted(missing, name)
        ):
            yield f"{name}: {was} -> {value}"


def false_findings(missing: str, code: str, was: int | None, num: int) -> Iterator[str]:
    """A rule reports what it did not, or is clean where it was not."""
    if num and not was and code not in ABOUT_ROWS and not is_permitted(missing, f"check {code}"):
        yield f"{code} reports {num} and did not"
    is_judged = {(code, missing), (code, missing.partition(".")[0])} & CLEAN_ALL_THE_SAME.keys()
    if not num and was != 0 and not is_judged:
        yield f"{code} is clean and was {was or 'not applicable'}"


def is_permitted(missing: str, name: str) -> bool:
    return any(
        re.match(rf"{where}(\.|$)", missing) and re.match(figure, name)
        for where, figure in PERMITTED
    )


def is_same(was: Any, value: Any) -> bool:
    if isinstance(was, float) and isinstance(value, float):
        return isclose(was, value, rel_tol=1e-9)
    says_less = isinstance(was, str) and isinstance(value, str) and was.startswith(value)
    return says_less or bool(was == value)


def says_so(name: str, value: Any) -> bool:
    """Whether the figure itself says that something was not recorded."""
    return any(word in f"{name} {value}" for word in NOT_RECORDED)


def profile() -> Trace:
    """A profile of three steps, of which each launches two kernels, a copy and a collective."""
    spans: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for step in range(3):
        begins = 1_000_000 * step
        on_gpu = [("gemm", 200_000), ("ncclAllReduce", 120_000), ("Memcpy DtoH", 30_000)]
        lasted, at = 0, begins + 60_000
        for number, (name, length) in enumerate(on_gpu):
            call = {"track": "CPU / main", "name": "cudaLaunchKernel", "category": "cuda_runtime",
                    "ts_ns": begins + 10_000 * number, "dur_ns": 5_000}  # fmt: skip
            ran = {"track": "GPU 0 / stream 7", "name": name, "ts_ns": at + lasted,
                   "category": "gpu_memcpy" if name.startswith("Mem") else "kernel",
                   "dur_ns": length}  # fmt: skip
            shared = {"step": step, "form": "slice", "correlation": 10 * step + number}
            spans += [shared | call | {"span": len(spans)}, shared | ran | {"span": len(spans) + 1}]
            lasted += length
        steps.append(
            {"step": step, "kind": ("prefill", "decode", "mixed")[step], "ts_ns": begins,
             "dur_ns": 700_000, "cpu_dur_ns": 200_000, "gpu_ts_ns": at, "gpu_dur_ns": lasted,
             "gpu_busy_ns": lasted, "num_prefill_tokens": (64, 0, 32)[step],
             "num_decode_tokens": (0, 8, 8)[step], "num_prefill_reqs": (1, 0, 1)[step],
             "num_decode_reqs": (0, 8, 8)[step], "tag": f"step {step}", "inferred": "tags"}
        )  # fmt: skip
    return trace_of(steps=steps, spans=spans, report=ReadReport(), clock=ClockInfo("profiler"))


def filled_in() -> Trace:
    """A trace with a value in every column of every table, made of the schema."""
    rows: dict[str, Any] = {
        table.name: [
            {column.name: _value(column, number) for column in table.columns} | {"rank": 0}
            for number in range(NUM_ROWS)
        ]
        for table in TABLES
    }
    return trace_of(**rows)


def _value(column: Column, number: int) -> Any:
    if column.values:
        return column.values[number % len(column.values)]
    if column.type is Type.STR:
        return f"r{number % 3}" if column.name in NAMES else f"{column.name}{number % 3}"
    if column.type is Type.BOOL:
        return number % 2 == 0
    return 1_000 * number if column.name.endswith("_ns") else number // 2


def recorded(name: str, variant: str = "before", **options: str) -> Trace:
    """A run of the reference engine."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.trace"
        scenario(name).record(variant, path, asked(options, seed=0))
        return Trace.open(path).in_memory()


RECORDINGS: dict[str, Callable[[], Trace]] = {
    "made of the schema": filled_in,
    "a queue": lambda: Trace.open(SAMPLES / "fcfs-preemption-before.trace"),
    "core groups": lambda: recorded("mix-admission", steps="1", requests="4", groups="4"),
    "slots": lambda: recorded("slot-recycling"),
    "ranks": lambda: recorded("ep-multiplexing"),
    "vLLM": lambda: Trace.open(SAMPLES / "vllm_crowd.trace"),
    "SGLang": lambda: Trace.open(SAMPLES / "sglang_retractions.trace"),
    "a profile": profile,
}


@cache
def opened(name: str, *, asks_why: bool = False) -> Recorded:
    return Recorded.of(RECORDINGS[name](), asks_why=asks_why)


@slow
@looped("table", ["steps", "batch_rows", "lifecycle", "decisions", "core_spans", "spans"])
def test_without_a_table_no_figure_is_false(table: str) -> None:
    assert list(false_figures(opened("made of the schema"), (table, None))) == []


@looped("column", ["dur_ns", "step"])
def test_without_a_column_of_steps_no_figure_is_false(column: str) -> None:
    assert list(false_figures(opened("made of the schema"), ("steps", column))) == []


@slow
@looped(
    ("table", "column"), [(table, each) for table, names in ON_EVERY_ROW.items() for each in names]
)
def test_a_column_with_gaps_is_said_to_have_them(table: str, column: str) -> None:
    trace = filled_in()
    is_odd = pl.int_range(pl.len()) % 2 == 1
    rows = trace.table(table).with_columns(pl.when(~is_odd).then(pl.col(column)).alias(column))
    if table == "lifecycle":
        rows = rows.with_columns(event=pl.lit("arrive"))

    (line,) = missing_values(trace.replacing({table: rows}, trace.manifest))

    assert line.startswith(f"{table}.{column} is missing in ")


@slow
@pytest.mark.parametrize("name", RECORDINGS)
def test_without_any_table_or_column_no_figure_is_false(name: str) -> None:
    recorded = opened(name, asks_why=True)
    found = {
        ".".join(filter(None, case)): wrong
        for case in CASES
        if recorded.has(*case) and (wrong := list(false_figures(recorded, case)))
    }

    assert found == {}


def test_every_table_and_column_has_a_value_in_some_recording() -> None:
    made = opened("made of the schema")

    assert [case for case in CASES if not made.has(*case)] == []
