"""The task graphs of a trace of core groups: what was run there, to be run again under a policy.

One graph for each step that has tasks, in order; a trace without steps is one graph. What is taken
from where:

- shapes, core masks, numbers of blocks, all-or-nothing starts, what was skipped: `tasks`;
- dependencies: `task_edges`; the order of submission: when tasks were submitted;
- how long a block runs: `core_spans`. Where the parts of a MIX end together, they met: its time is
  from its last start to its end. Where they do not, it is that of its longest part.

What a trace does not say is taken for the plainest that it can be, and a sentence says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.engine.workloads.graphs import (
    MAX_BLOCKS,
    Graph,
    Graphs,
    GraphSpec,
    Shape,
    TaskSpec,
    graph_of,
)
from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

NOMINAL_NS = 10_000
_LONGEST_NS = 10**12
_MASKS = {"AIC": 1, "AIV": 2, "MIX": 7, "DUMMY": 0}
_SHAPES: dict[int, Shape] = {0: "DUMMY", 1: "AIC", 2: "AIV", 4: "AIV"}
_BLOCK = ("task", "block")
Row = dict[str, Any]


def graphs_of(trace: Trace) -> Graphs:
    """Return the graphs of a trace that has tasks; ConfigError where none can be made of them."""
    rows = trace.tasks.sort("ts_ns", maintain_order=True).collect().to_dicts()
    try:
        guessed = Counter[str]()
        found = _Found(rows, _ran(trace, guessed), _before(trace), guessed)
        steps = _by_step(rows)
        graphs = tuple(found.graph(steps[step]) for step in steps)
    except ConfigError as error:
        raise ConfigError(error.what, where=trace.name, todo=error.todo) from None
    took = _took(trace)
    groups, threads = _device(trace)
    return Graphs(
        graphs, trace.name, groups, threads, found.inferred,
        tuple(took.get(step) for step in steps),
    )  # fmt: skip


@dataclass(slots=True)
class _Found:
    """What a trace says of its tasks, and a count of all that it does not say.

    `ran` is how long each block of each task ran, `before` what each task waits for.
    """

    rows: Sequence[Row]
    ran: Mapping[int, Mapping[int, int]]
    before: Mapping[int, Sequence[int]]
    guessed: Counter[str]
    _typical: dict[tuple[str, Any], int] = field(init=False)

    def __post_init__(self) -> None:
        if len({row["rank"] for row in self.rows}) > 1:
            raise ConfigError("there are tasks of several ranks", todo="give the trace of one rank")
        if sum(self._num_blocks(row) for row in self.rows) > MAX_BLOCKS:
            raise ConfigError(f"there are more than {MAX_BLOCKS:,} blocks")
        self._typical = _typical(self.rows, self.ran)

    @property
    def inferred(self) -> tuple[str, ...]:
        """A sentence for each thing that is not known and was taken for something."""
        counted = [f"{count:,} {what}" for what, count in self.guessed.items()]
        none = [] if self.before else ["no dependency is recorded: no task waits for another"]
        return (*none, *counted)

    def graph(self, rows: Sequence[Row]) -> Graph:
        """The graph of one step."""
        here = {row["task"] for row in rows}
        return graph_of(GraphSpec([self._task(row, here) for row in rows]))

    def _task(self, row: Row, here: set[int]) -> TaskSpec:
        mask = self._mask(row)
        shape = _SHAPES.get(mask, "MIX")
        after = self.before.get(row["task"], ())
        if num_lost := sum(each not in here for each in after):
            self.guessed["dependencies on tasks that are not a listed are left out"] += num_lost
        spec = TaskSpec(
            str(row["task"]), shape, row["name"] or f"task {row['task']}",
            after=[str(each) for each in after if each in here],
            is_enabled=row["outcome"] != "skipped",
        )  # fmt: skip
        if mask:
            if row["num_blocks"] is None:
                self.guessed["tasks of unknown size are taken to have the blocks that ran"] += 1
            spec.is_sync_start = self._is_sync_start(row)
            spec.dur_ns = self._times(row)
        if shape == "MIX":
            spec.core_mask = mask
        return spec

    def _mask(self, row: Row) -> int:
        mask = row["core_mask"]
        if mask is not None and 0 <= mask <= _MASKS["MIX"]:
            return int(mask)
        if row["shape"] == "MIX":
            self.guessed["MIX tasks that do not name their cores are taken to need all three"] += 1
        return _MASKS.get(row["shape"], 0)

    def _is_sync_start(self, row: Row) -> bool:
        if row["is_sync_start"] is None:
            self.guessed["tasks that do not say so are taken not to start all at once"] += 1
        return bool(row["is_sync_start"])

    def _times(self, row: Row) -> list[int]:
        """How long each block runs: as it did, or as others of its kernel, or of its shape, did."""
        known = self.ran.get(row["task"], {})
        return [
            known[block] if block in known else self._guess(row)
            for block in range(self._num_blocks(row))
        ]

    def _num_blocks(self, row: Row) -> int:
        """How many blocks a task has: as it says, or those that ran."""
        ran = self.ran.get(row["task"], {})
        return max(1, row["num_blocks"] or max(ran, default=0) + 1)

    def _guess(self, row: Row) -> int:
        if row["outcome"] == "skipped":
            return 0
        for kind, what in (("name", "others of their kernel"), ("shape", "others of their shape")):
            typical = self._typical.get((kind, row[kind]))
            if typical is not None:
                self.guessed[f"blocks of unknown length are taken to last as {what} do"] += 1
                return typical
        self.guessed[f"blocks of unknown length are taken to last {NOMINAL_NS:,} ns each"] += 1
        return NOMINAL_NS


def _typical(
    rows: Sequence[Row], ran: Mapping[int, Mapping[int, int]]
) -> dict[tuple[str, Any], int]:
    """The median time of a block of each kernel and of each shape."""
    times: dict[tuple[str, Any], list[int]] = defaultdict(list)
    for row in rows:
        for kind in ("name", "shape"):
            times[kind, row[kind]] += ran.get(row["task"], {}).values()
    return {key: median_low(each) for key, each in times.items() if each}


def _ran(trace: Trace, guessed: Counter[str]) -> dict[int, dict[int, int]]:
    """How long each block ran, by task and block, of those that began and ended."""
    if not trace.manifest.is_measured("core_spans"):
        return {}
    ran_ns = pl.col("end_ns") - pl.col("ts_ns")
    has_met = (pl.len() > 1) & (pl.col("end_ns").n_unique() == 1)
    blocks = (
        trace.core_spans.drop_nulls(("ts_ns", *_BLOCK))
        .group_by(_BLOCK)
        .agg(
            ns=pl.when(has_met).then(ran_ns.min()).otherwise(ran_ns.max()),
            is_apart=(pl.len() > 1) & ~has_met,
            is_over=pl.col("end_ns").is_not_null().all(),
        )
        .filter("is_over", pl.col("ns").is_between(0, _LONGEST_NS))
    )
    ran: dict[int, dict[int, int]] = defaultdict(dict)
    known = blocks.select(*_BLOCK, "ns", "is_apart").collect()
    for task, block, ns, _ in known.iter_rows():
        ran[task][block] = ns
    if num_apart := known["is_apart"].to_list().count(True):
        guessed["blocks whose parts ended apart are taken to last as their longest part"] += (
            num_apart
        )
    return dict(ran)


def _before(trace: Trace) -> dict[int, list[int]]:
    """What each task waits for; whatever waits twice for the same waits once."""
    edges = trace.task_edges.select("to_task", "from_task").drop_nulls().unique(maintain_order=True)
    before: dict[int, list[int]] = defaultdict(list)
    for after, earlier in edges.collect().iter_rows():
        before[after].append(earlier)
    return dict(before)


def _by_step(rows: Iterable[Row]) -> dict[int | None, list[Row]]:
    steps: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows:
        steps[row["step"]].append(row)
    return steps


def _took(trace: Trace) -> dict[int | None, int]:
    """How long each step kept the cores: from its first dispatch to its last end, where known."""
    if not trace.manifest.is_measured("core_spans"):
        return {}
    since = pl.coalesce("dispatch_ns", "ts_ns").min()
    took = trace.core_spans.group_by("step").agg(ns=pl.col("end_ns").max() - since)
    return dict(took.drop_nulls("ns").select("step", "ns").collect().iter_rows())


def _device(trace: Trace) -> tuple[int | None, int | None]:
    """How many groups and scheduler threads there were, as far as the trace says."""
    config = trace.manifest.config
    device, settings = (_section(config, name) for name in ("device", "settings"))
    kinds, threads = device.get("core_types"), device.get("core_to_thread")
    num_groups = kinds.count("aic") if isinstance(kinds, list) else settings.get("groups")
    num_threads = len(set(threads)) if isinstance(threads, list) else settings.get("threads")
    return _number(num_groups), _number(num_threads)


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= 10_000 else None
