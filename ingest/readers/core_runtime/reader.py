"""Reader of the core-group runtime's own log, with the debug lines that a hang is reported with.

What each line says is in `decode`, and what follows from all of them in `tables`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.ingest.errors import LimitExceeded, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, LogMessage, Manifest, ReadReport
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.core_runtime.blocks import task_name
from stepscope.ingest.readers.core_runtime.decode import MARKERS, RuntimeLog
from stepscope.ingest.readers.core_runtime.tables import RuntimeTables
from stepscope.ingest.readers.encodings.inflate import Inflater, blocks_of
from stepscope.ingest.readers.seam import OneFile
from stepscope.ingest.readers.text.split import (
    NO_END,
    SNIFF_BYTES,
    Lines,
    as_utf8,
    is_text,
    text_of,
)

DIGITS = "0123456789"
"""A number at the end of a line without its end may be half of one."""
_OVERLAP_BYTES = 32
MOST_MESSAGES = 64
IN_ORDER = (
    "lines without a time, like the device's: in order, 1 µs apart; their distances mean nothing"
)
_STATES = {"core_spans": "ordered", "steps": "inferred", "tasks": "inferred"}


class RuntimeLogReader(OneFile):
    """Reads runs, tasks, dispatches, stall reports and host spans; counts every other line."""

    name = "log of the core-group runtime (dispatches, stall reports, [STRACE])"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell a text in which a line of the runtime is; looks beyond the head where it must."""
        return is_text(head) and not path.is_dir() and _is_in_file(path)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the tables and the manifest; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        lines, log = Lines(blocks, limits.line), RuntimeLog(limits.rows)
        ended = None
        repaired: dict[str, int] = {}
        try:
            for content, is_whole in lines:
                text = text_of(content)[0]
                if log.take(text if is_whole else text.rstrip(DIGITS)) and not is_whole:
                    repaired[NO_END] = 1
        except LimitExceeded as error:
            ended = f"{error.what} ({error.todo})"
        if not log.read:
            raise TraceError("no line in it was written by the runtime", where=str(path))
        log.skipped.update(lines.left_out())
        made = RuntimeTables(log)
        tables = made.tables()
        messages = tuple(islice(_failures(log, tables.get("tasks")), MOST_MESSAGES))
        manifest = _manifest(log, made, repaired, messages, ended or blocks.damage)
        return dict(tables), replace(
            manifest,
            tables={name: _state(name, log, closed=manifest.closed) for name in tables},
        )


def _is_in(text: bytes) -> bool:
    return any(mark in text for mark in MARKERS)


def _is_in_file(path: Path) -> bool:
    left, end = SNIFF_BYTES, b""
    try:
        for block in as_utf8(Inflater(path)):
            if _is_in(end + block):
                return True
            left, end = left - len(block), block[-_OVERLAP_BYTES:]
            if left <= 0:
                return False
    except TraceError:
        pass
    return False


def _failures(log: RuntimeLog, tasks: pl.DataFrame | None) -> Iterator[LogMessage]:
    """The failures of runs of which no task is left: those are all that tells of the failure."""
    is_left = pl.col("outcome") == "pending"
    left = set() if tasks is None else set(tasks.filter(is_left)["step"].to_list())
    texts = {line: text for line, _, _, text in log.messages}
    for number, run in enumerate(log.runs, 1):
        if run.failure is None or run.failure_line is None or number in left:
            continue
        text = texts.get(run.failure_line, "")
        ts_ns = log.places.ns(run.failure_line) if log.places.times else None
        yield LogMessage("fatal", f"{run.failure}: {text}", ts_ns)


def _manifest(
    log: RuntimeLog,
    made: RuntimeTables,
    repaired: dict[str, int],
    messages: tuple[LogMessage, ...],
    damage: str | None,
) -> Manifest:
    closed = damage is None
    report = ReadReport(
        read=dict(log.read),
        skipped=dict(log.skipped),
        repaired=repaired,
        inferred=made.inferred,
        notes=tuple(_notes(log, damage)),
        messages=messages,
    )
    return Manifest(
        producer="simpler",
        clock=ClockInfo("profiler" if log.places.times else "none", log.epoch_ns),
        config=_config(log, made),
        closed=closed,
        report=report,
    )


def _state(name: str, log: RuntimeLog, *, closed: bool) -> str:
    """A stall report lists some of the tasks that are left, and blocks without their dispatches."""
    of_report = name == "tasks" and any(run.stall_class for run in log.runs)
    if not closed or of_report or (name == "core_spans" and not log.dispatches):
        return "partial"
    return _STATES.get(name, "complete")


def _config(log: RuntimeLog, made: RuntimeTables) -> dict[str, Any]:
    types = made.cores.types
    device = {"device": {"num_cores": len(types), "core_types": types}} if types else {}
    return device | ({"rings": log.rings} if log.rings else {})


def _notes(log: RuntimeLog, damage: str | None) -> Iterator[str]:
    if log.num_untimed:
        yield IN_ORDER
    if len(log.runs) > 1 and log.dispatches:
        yield f"{len(log.runs):,} runs: the numbers of tasks go on, 2^48 a run"
    for number, run in enumerate(log.runs, 1):
        said = [part for part in (run.failure, run.stall_class) if part]
        done = "{:,} of {:,} tasks over".format(*run.completed) if run.completed else ""
        stuck = f"{task_name(run.stuck[1], None)} is stuck" if run.stuck else ""
        if run.stuck and run.stuck[2] is not None:
            stuck += f" on core {run.stuck[2]}"
        if told := [part for part in (*said, done, stuck) if part]:
            yield f"run {number}: " + ", ".join(told)
    if damage:
        yield f"{damage}; all lines before are kept"
