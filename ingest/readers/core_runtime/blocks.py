"""Blocks on cores out of a core-group runtime's log, in order: what began and ended before what.

A dispatch says which core gets a block, and whether the core was idle or the block is pending
behind another. When a block began and ended is not said, but an order follows: what a core was
given before it was found idle had ended; of two blocks that are pending one after the other, the
first had begun. So times of blocks are in the right order and their lengths say nothing. A block of
which nothing says that it ended has no end, and one that never began has no start.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ingest.readers.core_masks import SHAPE_OF
from stepscope.ingest.readers.core_runtime.decode import RuntimeLog

RUN_BITS = 48
"""Tasks are numbered anew in every run: those of the n-th, from 0, are shown n * 2^48 higher."""
LAST_RUN = 1 << 14
MOST_GROUPS = 1 << 16
Types = dict[str, pl.DataType | type[pl.DataType]]

_DISPATCHES: Types = {
    "run": pl.Int64, "line": pl.Int64, "thread": pl.Int32, "slot": pl.String, "part": pl.String,
    "task": pl.Int64, "kernels": pl.List(pl.Int64), "block": pl.Int32, "num_blocks": pl.Int32,
    "offset": pl.Int32, "core": pl.Int32,
}  # fmt: skip
_RUNNING: Types = {
    "run": pl.Int64, "line": pl.Int64, "core": pl.Int32, "task": pl.Int64, "part": pl.String,
}  # fmt: skip


def dispatched(log: RuntimeLog) -> pl.DataFrame:
    """Every dispatch, with the lines by which its block had `began` and had `ended`, if ever."""
    core = ("run", "core")
    stuck = reported(log).select("run", "core", "task", is_stuck=True).unique()
    told = (
        pl.DataFrame(log.dispatches, schema=_DISPATCHES, orient="row")
        .sort("run", "core", "line", maintain_order=True)
        .join(_closing_lines(log), on=core, how="left", maintain_order="left")
        .join(stuck, on=["run", "core", "task"], how="left", maintain_order="left")
    )
    # Of several blocks of a task on a core it is the last one that the report saw.
    last = pl.col("line") == pl.col("line").max().over("run", "core", "task")
    is_stuck = pl.col("is_stuck").fill_null(value=False) & last
    behind = is_stuck.cum_sum().over(core) - is_stuck.cast(pl.UInt32) > 0
    next_line, after = (pl.col("line").shift(-by).over(core) for by in (1, 2))
    next_slot = pl.col("slot").shift(-1).over(core)
    ended = pl.when(next_slot == "running").then(next_line).otherwise(after)
    return (
        told.with_columns(is_stuck=is_stuck, is_behind=behind)
        .with_columns(ended=pl.coalesce(ended, "closing"))
        .with_columns(ended=pl.when(~pl.col("is_stuck") & ~pl.col("is_behind")).then("ended"))
        .with_columns(began=pl.when(pl.col("slot") == "running").then("line")
                      .otherwise(pl.col("ended").shift(1).over(core)))
    )  # fmt: skip


def reported(log: RuntimeLog) -> pl.DataFrame:
    """What stall reports say that cores were running: run, line, core, task, part."""
    return pl.DataFrame(log.running, schema=_RUNNING, orient="row")


def _closing_lines(log: RuntimeLog) -> pl.DataFrame:
    """The line by which all that a core was given had ended, but for what it is said to run.

    That is the end of the run, or a stall report that names the core.
    """
    places = {(run, core) for run, *_, core in log.idle}
    places |= {(run, core) for run, _, core, *_ in log.running}
    reports = [(*place, log.runs[place[0]].report_line) for place in places]
    ends = [
        (row[0], row[-1], log.runs[row[0]].finish_line)
        for row in log.dispatches
        if log.runs[row[0]].is_over
    ]
    schema: Types = {"run": pl.Int64, "core": pl.Int32, "closing": pl.Int64}
    known = pl.DataFrame(reports + ends, schema=schema, orient="row")
    return known.unique(["run", "core"], keep="last", maintain_order=True)


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core is what: of N groups, `g` has AIC `g` and the AIVs N + 2g and N + 2g + 1."""

    num_groups: int

    @classmethod
    def of(cls, log: RuntimeLog) -> Cores:
        """Count the groups; 0 where the log does not say, or its dispatches say otherwise."""
        num = _num_groups(log)
        fits = all((core < num) == (offset % 3 == 0) for *_, offset, core in log.dispatches)
        return cls(num if fits else 0)

    @property
    def types(self) -> list[str]:
        """The kind of each core, as swimlanes spell it."""
        return ["aic"] * self.num_groups + ["aiv", "aiv"] * self.num_groups

    def kinds(self, cores: pl.Series) -> pl.Series:
        """AIC, AIV0 or AIV1, null where it is not known."""
        return pl.Series([self._place(core)[0] for core in cores], dtype=pl.String)

    def groups(self, cores: pl.Series) -> pl.Series:
        """The group of each core, null where it is not known."""
        return pl.Series([self._place(core)[1] for core in cores], dtype=pl.Int32)

    def _place(self, core: int) -> tuple[str | None, int | None]:
        num = self.num_groups
        if core >= 3 * num:
            return None, None
        return ("AIC", core) if core < num else (f"AIV{(core - num) % 2}", (core - num) // 2)


def _num_groups(log: RuntimeLog) -> int:
    """The AIV0 of the first of N groups is core N; else, N is a third of the cores."""
    told = {core - 2 * group for core, (kind, group) in log.clusters.items() if kind == "AIV0"}
    if told:
        return max(0, told.pop()) if len(told) == 1 else 0
    for run in log.runs:
        num_cores = run.num_cores or sum(run.threads.values())
        if num_cores and num_cores % 3 == 0:
            return min(num_cores // 3, MOST_GROUPS)
    return 0


def identity() -> tuple[pl.Expr, pl.Expr]:
    """The step and the task of a row as they are shown."""
    run, task = pl.col("run"), pl.col("task")
    fits = (task < 1 << RUN_BITS) & (run < LAST_RUN)
    number = pl.when(fits).then(run * (1 << RUN_BITS) + task).otherwise(task)
    return (run + 1).alias("step"), number.alias("task")


def shown(run: int, task: int) -> int:
    """The task's number as it is shown."""
    fits = task < 1 << RUN_BITS and run < LAST_RUN
    return run << RUN_BITS | task if fits else task


def shape_of(kernels: pl.Expr) -> pl.Expr:
    """The shape of a task with these kernels, of which -1 is none: `[aic, aiv0, aiv1]`."""
    aic, aiv0, aiv1 = (
        (kernels.list.get(at, null_on_oob=True) >= 0).cast(pl.Int32) * (1 << at) for at in range(3)
    )
    mask = aic + aiv0 + aiv1
    shape = mask.replace_strict(SHAPE_OF, default=pl.lit("MIX"), return_dtype=pl.String)
    return pl.when(mask.is_not_null()).then(shape)


def kernel_mask(kernels: list[int] | None) -> int | None:
    """The cores of a group that have a kernel, a bit for each; None where that is not told."""
    return None if kernels is None else sum((k >= 0) << at for at, k in enumerate(kernels))


def task_name(task: int, kernels: list[int] | None) -> str:
    """Name a task, `kernel 11+12 r3 t9`: what runs, and the task's number in its ring."""
    used = dict.fromkeys(str(kernel) for kernel in kernels or () if kernel >= 0)
    what = f"kernel {'+'.join(used)}" if used else "task" if kernels is None else "dummy"
    return f"{what} r{task >> 32} t{task & 0xFFFFFFFF}"
