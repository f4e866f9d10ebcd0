"""The tables of a core-group runtime's log: runs, tasks, blocks, what waits, what the host did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.ingest.frames import polars_schema
from stepscope.ingest.readers.core_masks import SHAPE_OF, STALL, TASKS, TASKS_OVER
from stepscope.ingest.readers.core_runtime.blocks import (
    Cores,
    dispatched,
    identity,
    kernel_mask,
    reported,
    shape_of,
    shown,
    task_name,
)
from stepscope.ingest.readers.core_runtime.decode import RuntimeLog
from stepscope.ingest.schema import BY_NAME, CORE_KINDS

LIMIT_GIVEN = 1 << 16
UNNAMED = -1
"""The number of a task that the log counts but does not name."""
UNLISTED = f"tasks that full rings had been given, beyond {LIMIT_GIVEN:,}"
FROM_REPORT, BY_NUMBER = (
    "blocks from the cores that a stall report names",
    "tasks of which the log gives only the number",
)
ENDS, RUNS, ORDER, KINDS = (
    "starts and ends of blocks, in order only, from later dispatches to their cores",
    "steps from runs on the device",
    "times from the position of the line",
    "kinds and groups of cores from how many there are",
)
Row = dict[str, Any]
Key = tuple[int, int]


class RuntimeTables:
    """Rows out of what the lines said; `inferred` counts what they did not say themselves."""

    def __init__(self, log: RuntimeLog) -> None:
        self.log = log
        self.inferred: dict[str, int] = {}
        self._take_stuck()
        self.cores = Cores.of(log)
        self._blocks = dispatched(log)

    def _take_stuck(self) -> None:
        """Add tasks that only the host reports as stuck; the device's report has more details."""
        tasks = {(run, task) for run, _, task, *_ in self.log.tasks}
        running = {(run, task) for run, _, _, task, _ in self.log.running}
        for number, run in enumerate(self.log.runs):
            if not run.stuck:
                continue
            line, task, core = run.stuck
            if (number, task) not in tasks:
                self.log.tasks.append((number, line, task, "RUNNING", None, None, None))
            if core is not None and (number, task) not in running:
                self.log.running.append((number, line, core, task, None))

    def tables(self) -> dict[str, pl.DataFrame]:
        """All tables that have a row."""
        made = {
            "steps": self._steps(),
            "tasks": self._tasks(),
            "core_spans": self._core_spans(),
            "decisions": self._decisions(),
            "spans": self._spans(),
            "counters": self._counters(),
        }
        self._count(ORDER, self.log.num_untimed)
        if not self.log.clusters:
            self._count(KINDS, len(self.cores.types))
        return {name: table for name, table in made.items() if len(table)}

    def _count(self, what: str, num: int) -> None:
        if num:
            self.inferred[what] = self.inferred.get(what, 0) + num

    def _ns(self, line: int | None) -> int | None:
        return None if line is None else self.log.places.ns(line)

    def _placed(self, lines: pl.Series) -> pl.Series:
        return pl.Series([self._ns(line) for line in lines], dtype=pl.Int64)

    # -- blocks --------------------------------------------------------------------------------

    def _core_spans(self) -> pl.DataFrame:
        block = ["run", "core", "task"]
        begun = self._blocks.filter(pl.col("began").is_not_null())
        seen = begun.filter("is_stuck").select(block)
        told = reported(self.log).unique(block, keep="first", maintain_order=True)
        told = told.join(seen, on=block, how="anti", maintain_order="left")
        self._count(ENDS, len(begun))
        self._count(FROM_REPORT, len(told))
        return pl.concat([self._dispatched(begun), self._reported(told)], how="diagonal")

    def _dispatched(self, begun: pl.DataFrame) -> pl.DataFrame:
        shape = shape_of(pl.col("kernels"))
        place = (pl.col("offset") % 3).replace_strict(
            dict(enumerate(CORE_KINDS)), return_dtype=pl.String
        )
        # A MIX has a place for each part; what needs one AIV only is "aiv0" on either.
        is_placed = (shape == "MIX") | (pl.col("part") == "AIC")
        return begun.select(
            *identity(),
            "block",
            "core",
            "slot",
            "thread",
            shape=shape,
            group=self.cores.groups(begun["core"]),
            core_kind=pl.when(is_placed).then("part").otherwise(place),
            ts_ns=self._placed(begun["began"]),
            dispatch_ns=self._placed(begun["line"]),
            end_ns=self._placed(begun["ended"]),
        )

    def _reported(self, told: pl.DataFrame) -> pl.DataFrame:
        known = {(run, task): kernels for run, _, task, *_, kernels in self.log.tasks}
        kernels = [known.get(key) for key in told.select("run", "task").rows()]
        kinds = self.cores.kinds(told["core"])
        # Where a part is on a core of another kind, which group it was meant for is not said.
        is_meant = kinds.is_null() | kinds.eq_missing(told["part"])
        return told.with_columns(kernels=pl.Series(kernels, dtype=pl.List(pl.Int64))).select(
            *identity(),
            "core",
            block=pl.lit(None, pl.Int32),
            shape=shape_of(pl.col("kernels")),
            group=pl.when(is_meant).then(self.cores.groups(told["core"])),
            core_kind=pl.coalesce("part", kinds),
            ts_ns=self._placed(told["line"]),
        )

    # -- tasks ---------------------------------------------------------------------------------

    def _tasks(self) -> pl.DataFrame:
        rows: dict[Key, Row] = {}
        self._of_dispatches(rows)
        self._of_reports(rows)
        self._of_rings(rows)
        self._of_classes(rows)
        made = [
            {
                "step": run + 1,
                "task": None if task == UNNAMED else shown(run, task),
                "name": None if task == UNNAMED else task_name(task, row.get("kernels")),
                "shape": row.get("shape"),
                "core_mask": kernel_mask(row.get("kernels")),
                "num_blocks": row.get("num_blocks"),
                "outcome": row["outcome"],
                "ts_ns": self._ns(row.get("line")),
                "retired_ns": self._ns(row.get("retired")),
            }
            for (run, task), row in rows.items()
        ]
        return _frame("tasks", made)

    def _of_dispatches(self, rows: dict[Key, Row]) -> None:
        """Tasks of which a block was dispatched: over, if all of them were and have ended."""
        by_task = self._blocks.sort("line").group_by("run", "task", maintain_order=True)
        told = by_task.agg(
            pl.col("kernels", "num_blocks").first(),
            shape=shape_of(pl.col("kernels").first()),
            num_found=pl.col("block").n_unique(),
            has_ended=pl.col("ended").is_not_null().all(),
            ended=pl.col("ended").max(),
        )
        for row in told.iter_rows(named=True):
            is_over = row["has_ended"] and row["num_found"] >= row["num_blocks"]
            rows[row["run"], row["task"]] = {
                **row,
                "line": self.log.runs[row["run"]].first_line,
                "outcome": "run" if is_over else "pending",
                "retired": row["ended"] if is_over else None,
            }

    def _of_reports(self, rows: dict[Key, Row]) -> None:
        """Tasks that a stall report lists are left."""
        for run, _, task, _, _, _, kernels in self.log.tasks:
            mask = kernel_mask(kernels)
            shape = None if mask is None else SHAPE_OF.get(mask, "MIX")
            first = self.log.runs[run].first_line
            row = rows.setdefault((run, task), {"line": first, "kernels": kernels, "shape": shape})
            row |= {"outcome": "pending", "retired": None}

    def _of_classes(self, rows: dict[Key, Row]) -> None:
        """Add a task for each run that is reported as stalled without a name of any task."""
        named = {run for run, _ in rows}
        for number, run in enumerate(self.log.runs):
            over, in_all = run.completed or (0, 0)
            if run.stall_class and number not in named and over < in_all:
                rows[number, UNNAMED] = {"line": run.first_line, "outcome": "pending"}

    def _of_rings(self, rows: dict[Key, Row]) -> None:
        """Tasks that a full ring had been given, and the one that it refused.

        The log only counts them, so that few lines stand for many: of all runs no more are listed
        than a ring has places for.
        """
        left = LIMIT_GIVEN
        for number, run in enumerate(self.log.runs):
            if not run.full:
                continue
            refused = run.refused
            listed = range(refused & ~0xFFFFFFFF, refused + 1)[-left - 1 :]
            unlisted = (refused & 0xFFFFFFFF) + 1 - len(listed)
            left -= len(listed) - 1
            self.log.skipped.update({UNLISTED: unlisted} if unlisted else {})
            for task in listed:
                if (number, task) not in rows:
                    line = None if task == refused else run.first_line
                    rows[number, task] = {"line": line, "outcome": "pending"}
                    self._count(BY_NUMBER, 1)

    # -- decisions -----------------------------------------------------------------------------

    def _decisions(self) -> pl.DataFrame:
        made = [*self._pending(), *self._waiting(), *self._refused()]
        return _frame("decisions", sorted(made, key=lambda row: int(row["ts_ns"])))

    def _pending(self) -> Iterator[Row]:
        held = {(run, core): task for run, _, core, task, _ in self.log.running}
        never = self._blocks.filter(pl.col("began").is_null()).sort("line")
        for row in never.iter_rows(named=True):
            run, core = row["run"], row["core"]
            holder = held.get((run, core))
            yield self._decision(run, row["line"], row["task"], "deferred") | {
                "reason": f"block {row['block']} was put into a pending slot and did not begin",
                "resource": f"core {core}",
                "holder": None if holder is None else str(shown(run, holder)),
                "thread": row["thread"],
            }

    def _waiting(self) -> Iterator[Row]:
        for run, line, task, state, have, need, _ in self.log.tasks:
            if state == "WAIT":
                yield self._decision(run, line, task, "deferred") | {
                    "reason": "waits for tasks before it",
                    "resource": "tasks before it that are over",
                    "needed": need,
                    "available": have,
                }

    def _refused(self) -> Iterator[Row]:
        for number, run in enumerate(self.log.runs):
            if run.full:
                line, ring, num_tasks, window = run.full
                yield self._decision(number, line, run.refused, "rejected") | {
                    "reason": f"scope deadlock: {num_tasks} tasks of one scope fill a window of "
                    f"{window}, and are kept until the scope ends",
                    "resource": f"task window of ring {ring}",
                    "needed": 1,
                    "available": 0,
                    "holder": f"the scope's own {num_tasks} tasks",
                }

    def _decision(self, run: int, line: int, task: int, verdict: str) -> Row:
        subject = {"subject_kind": "task", "subject": str(shown(run, task))}
        return {"step": run + 1, "ts_ns": self._ns(line), "verdict": verdict, **subject}

    # -- the rest ------------------------------------------------------------------------------

    def _steps(self) -> pl.DataFrame:
        made = [
            {
                "step": number,
                "ts_ns": run.span[0] if run.span else self._ns(run.first_line),
                "dur_ns": run.span[1] if run.span else None,
                "executed_path": run.stall_class or run.failure,
                "tag": run.failure,
                "inferred": "[STRACE] lines" if run.span else "stall reports",
            }
            for number, run in enumerate(self.log.runs, 1)
            if run.span or run.is_judged
        ]
        self._count(RUNS, len(made))
        return _frame("steps", made)

    def _spans(self) -> pl.DataFrame:
        told = [
            {
                "ts_ns": ts_ns,
                "dur_ns": dur_ns,
                "name": name,
                "track": f"host {pid} / {tid}",
                "category": "STRACE",
                "form": "slice",
                "args": json.dumps({"inv": inv, "hid": hid, "depth": depth}),
            }
            for ts_ns, dur_ns, name, pid, tid, inv, hid, depth in self.log.spans
        ]
        said = [
            {
                "ts_ns": self._ns(line),
                "name": text,
                "track": f"messages / {side}",
                "category": level,
                "form": "instant",
            }
            for line, side, level, text in self.log.messages
        ]
        outer_first = pl.col("dur_ns").fill_null(0).neg()
        made = _frame("spans", told + said).sort("ts_ns", outer_first, maintain_order=True)
        return made.with_columns(span=pl.int_range(pl.len(), dtype=pl.Int64))

    def _counters(self) -> pl.DataFrame:
        names = ("line", "track", "name", "unit", "value")
        told = [dict(zip(names, row, strict=True)) for row in self.log.counters]
        made = [{**row, "ts_ns": self._ns(row.pop("line"))} for row in told]
        for number, run in enumerate(self.log.runs, 1):
            if run.stall_class and run.completed:
                of_run = {"step": number, "ts_ns": self._ns(run.report_line), "track": STALL}
                made += [
                    {**of_run, "name": name, "unit": "tasks", "value": float(value)}
                    for name, value in (
                        *zip((TASKS_OVER, TASKS), run.completed, strict=True),
                        *run.left.items(),
                    )
                ]
        return _frame("counters", made)


def _frame(table: str, made: list[Row]) -> pl.DataFrame:
    """Rows as a table; what they do not have is null."""
    frame = pl.DataFrame(made, schema=polars_schema(BY_NAME[table]))
    return frame.with_columns(rank=pl.lit(0, pl.Int32))
