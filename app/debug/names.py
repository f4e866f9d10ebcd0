"""What cores and blocks are called: a trace's numbers are of use to nobody who reads a screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from stepscope.app.debug.engine_state import Block, State
from stepscope.app.debug.held.device_cores import device_cores
from stepscope.app.printable import plain
from stepscope.app.timeline.listed.labels import block_name
from stepscope.ingest.trace import Trace

CoreName = tuple[int | None, str | None]


@dataclass(frozen=True, slots=True)
class Task:
    """A task by the name, the shape and the number of blocks that the trace gives it."""

    name: str | None
    shape: str
    num_blocks: int | None


@dataclass(frozen=True, slots=True)
class Names:
    """`cores` maps a core to its group and its kind; `tasks` has those that were asked for."""

    cores: Mapping[int, CoreName] = field(default_factory=dict)
    tasks: Mapping[int, Task] = field(default_factory=dict)

    def core(self, core: int) -> str:
        """A core as its lane is called: `group 2 AIV1`; its number where nothing else is known."""
        group, kind = self.cores.get(core, (None, None))
        if group is None:
            return plain(f"core {core} {kind or ''}".rstrip())
        return plain(f"group {group} {kind or f'core {core}'}")

    def block(self, block: Block) -> str:
        """A block as the timeline labels it: `qk_pv 7/8`."""
        task, number = block
        known = self.tasks.get(task)
        name, num_blocks = (known.name, known.num_blocks) if known else (None, None)
        return plain(block_name(name, task, number, num_blocks))

    def shape(self, block: Block) -> str:
        """The shape of a block's task; empty where it is not known."""
        known = self.tasks.get(block[0])
        return known.shape if known else ""


def core_names(trace: Trace, rank: int) -> dict[int, CoreName]:
    """Group and kind of every core that the trace knows; what ran on it goes first."""
    seen = trace.core_spans.filter(pl.col("rank") == rank).select("core", "group", "core_kind")
    rows = seen.drop_nulls("core").unique().sort("group", "core_kind", "core").collect()
    ran = {core: (group, kind) for core, group, kind in rows.iter_rows()}
    return {**device_cores(trace.manifest), **ran}


def names_in(
    trace: Trace, rank: int, cores: Mapping[int, CoreName], states: Iterable[State]
) -> Names:
    """Names for every block that the cores have in any of the states."""
    held = (slots for state in states for slots in (state.cores or {}).values())
    tasks = {task for slots in held for task, _ in slots.blocks}
    if not tasks:
        return Names(cores)
    own = (pl.col("rank") == rank) & pl.col("task").is_in(sorted(tasks))
    columns = ("task", "name", "shape", "num_blocks")
    rows = trace.tasks.filter(own).select(columns).unique("task", keep="first").collect()
    return Names(cores, {task: Task(*known) for task, *known in rows.iter_rows()})
