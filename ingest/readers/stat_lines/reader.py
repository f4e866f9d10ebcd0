"""Reader of JSON lines of a vLLM stat logger: statistics of the scheduler and of iterations.

{"timestamp": 1787267980.5, "engine_idx": 0,
    "scheduler_stats": {"num_running_reqs": 3, "num_waiting_reqs": 1, "kv_cache_usage": 0.38,
        "prefix_cache_stats": {"requests": 1, "queries": 100, "hits": 50}},
    "iteration_stats": {"iteration_timestamp": 1787267980.5, "num_prompt_tokens": 0,
        "num_generation_tokens": 3, "num_preempted_reqs": 0}}

A stat logger gets `SchedulerStats` and `IterationStats` (`vllm/v1/metrics/stats.py`), and writes
them nested or flat, sometimes under its own names. Numbers become counters. Running and waiting
requests and the use of the KV cache get the names of vLLM's log, so that the same rules judge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stepscope.ingest.errors import LimitExceeded, TraceError
from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.readers.encodings.inflate import Inflater, blocks_of, inflated
from stepscope.ingest.readers.seam import HEAD_BYTES, OneFile
from stepscope.ingest.readers.text.collect import Line, LogRows
from stepscope.ingest.readers.text.counter_rows import counter_trace, epoch_ns, is_number
from stepscope.ingest.readers.text.fields import Number
from stepscope.ingest.readers.text.json_records import JsonRecords
from stepscope.ingest.readers.text.split import Lines
from stepscope.ingest.readers.text.times import stamp_of
from stepscope.ingest.times import SECOND

NAME = "vLLM"
RECORDS, NO_RECORD = "records of stats", "lines that are not records of stats"
TIMELESS = "records without a time, left out because other records have one"
FINISHED = "lists within records (finished requests, latencies of an iteration), not read"
FROM_START = "times count from a start that is not in the file"
NO_TIMES = (
    "no record has a time: their order is known, the time between them is not; write "
    "time.time() as timestamp into each"
)
_MARKS = tuple(
    re.compile(rb'"(?:\w+:)?(?:num_)?(?:requests_)?' + what + rb'(?:_reqs|_requests)?"\s*:')
    for what in (b"running", b"waiting")
)
_BEGINS = re.compile(rb"\s*[\[{]")
_TIME = re.compile(
    r"@?(?:timestamp|time|ts|t|datetime|unix_time|iteration_timestamp|elapsed)(?:_(s|ms|us|ns))?"
)
_UNITS = {"s": SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
_ENGINES = ("engine_idx", "engine_index", "engine_id", "engine", "dp_rank")
_FLAT = ("scheduler_stats", "iteration_stats", "stats", "metrics", "data")
"""Objects whose names are not part of the names of their fields."""
_KNOWN: dict[str, tuple[str, str | None]] = {
    **{
        f"{before}{state}{after}": (state.capitalize(), "reqs")
        for state in ("running", "waiting")
        for before in ("num_", "", "num_requests_")
        for after in ("_reqs", "_requests", "")
    },
    **dict.fromkeys(
        ("kv_cache_usage", "gpu_cache_usage", "kv_cache_usage_perc", "gpu_cache_usage_perc"),
        ("GPU KV cache usage", None),
    ),
    **{
        f"{before}{name}_throughput": (f"Avg {name} throughput", "tokens/s")
        for before in ("", "avg_")
        for name in ("prompt", "generation")
    },
}
_DEEPEST, _LONGEST_NAME = 4, 128
_LAST_S = 1 << 32
_POSITION_NS = 1_000
Json = Mapping[str, Any]


class StatLinesReader(OneFile):
    """Reads counters; lines that are not records are counted as skipped."""

    name = "stats of vLLM's scheduler (JSON lines of a stat logger)"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell JSON that counts running and waiting requests as vLLM's stats do."""
        begins = _BEGINS.match(head.removeprefix(b"\xef\xbb\xbf")) is not None
        return begins and all(mark.search(head) for mark in _MARKS)

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[dict[str, Frame], Manifest]:
        """Read the records; raises `TraceError`."""
        blocks = blocks_of(path, progress, limits)
        rows = LogRows(limits)
        with path.open("rb") as file:
            head = inflated(file.read(HEAD_BYTES), HEAD_BYTES)
        is_list = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        records = _Records(blocks, limits, rows, is_list=is_list)
        ended, samples = None, _Samples(rows)
        try:
            for record in records:
                samples.add(record)
        except LimitExceeded as error:
            ended = f"{error.what} ({error.todo})"
        if not rows.read[RECORDS]:
            raise TraceError("it has no line with a record of stats", where=str(path))
        samples.end()
        notes = {"wall": (), "none": (NO_TIMES,)}.get(samples.clock, (FROM_START,))
        return counter_trace(rows, NAME, samples.clock, notes, ended or records.ended)


class _Records:
    """Iterates over the objects of a file: one a line, or elements of a list."""

    def __init__(self, blocks: Inflater, limits: Limits, rows: LogRows, *, is_list: bool) -> None:
        self.ended: str | None = None
        self._blocks, self._limits, self._rows, self._is_list = blocks, limits, rows, is_list

    def __iter__(self) -> Iterator[Json]:
        yield from self._listed() if self._is_list else self._lines()
        self.ended = self.ended or self._blocks.damage

    def _listed(self) -> Iterator[Json]:
        records = JsonRecords(self._blocks, lambda path: path == (), 2, self._limits)
        for record in records:
            if (found := self._decoded(record.text)) is not None:
                yield found
        self.ended = records.ended

    def _lines(self) -> Iterator[Json]:
        lines = Lines(self._blocks, self._limits.line)
        for line, is_whole in lines:
            found = self._decoded(line.removeprefix(b"\xef\xbb\xbf"))
            if found is not None:
                yield found
            elif not is_whole:
                self.ended = "cut off within a line"
        self._rows.skipped.update(lines.left_out())

    def _decoded(self, text: bytes) -> Json | None:
        try:
            found = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        self._rows.skipped[NO_RECORD] += 1
        return None


class _Samples:
    """Adds the counters of records at their times.

    Without any times, records are in order.
    """

    def __init__(self, rows: LogRows) -> None:
        self._rows = rows
        self._is_wall = False
        self._has_times: bool | None = None
        self._num = 0

    @property
    def clock(self) -> str:
        """The kind of clock of the times."""
        return "none" if not self._has_times else "wall" if self._is_wall else "profiler"

    def add(self, record: Json) -> None:
        """Add a record; the first one decides whether records have times."""
        numbers, time, engine = dict[str, Number](), _Time(), 0
        for name, value in self._fields(record, "", _DEEPEST):
            own = name.rpartition(".")[2]
            if own in _ENGINES and isinstance(value, int):
                engine = value if 0 <= value < 1 << 20 else 0
            elif match := _TIME.fullmatch(own):
                time.add(value, match[1])
            elif is_number(value):
                known, unit = _KNOWN.get(own, (name[:_LONGEST_NAME], None))
                numbers[known] = Number(float(value), unit)
        if not numbers:
            self._rows.skipped[NO_RECORD] += 1
            return
        if self._has_times is None:
            self._has_times, self._is_wall = time.ns is not None, time.is_wall
        if self._has_times and (time.ns is None or time.is_wall is not self._is_wall):
            self._rows.skipped[TIMELESS] += 1
            return
        self._num += 1
        ts_ns = time.ns if self._has_times and time.ns is not None else self._num * _POSITION_NS
        self._rows.read[RECORDS] += 1
        source = self._rows.source(NAME, Line(""), str(engine), engine)
        self._rows.counters(source, ts_ns, numbers)

    def end(self) -> None:
        """Drop counts of zero."""
        self._rows.skipped = +self._rows.skipped

    def _fields(self, record: Json, above: str, deepest: int) -> Iterator[tuple[str, Any]]:
        """Yield numbers and texts with their dotted names."""
        for key, value in record.items():
            name = f"{above}{key}"
            if isinstance(value, dict):
                if deepest:
                    inner = above if key in _FLAT else f"{name}."
                    yield from self._fields(value, inner, deepest - 1)
            elif isinstance(value, list):
                self._rows.skipped[FINISHED] += bool(value)
            elif isinstance(value, int | float | str) and not isinstance(value, bool):
                yield name, value


class _Time:
    """The first time in a record."""

    def __init__(self) -> None:
        self.ns: int | None = None
        self.is_wall = False

    def add(self, value: object, unit: str | None) -> None:
        """Take a number, in the unit of its name or of its size, or a date."""
        if self.ns is not None:
            return
        if isinstance(value, str):
            stamp = stamp_of(value)
            self.ns, self.is_wall = (stamp.ns, True) if stamp else (None, False)
        elif is_number(value) and value >= 0:
            wall = epoch_ns(value)
            relative = round(value * _UNITS[unit or "s"]) if value < _LAST_S * 10**9 else None
            self.ns, self.is_wall = (relative, False) if wall is None else (wall, True)
