"""Core groups from a swimlane exported to Chrome JSON, with lanes that are named after cores.

simpler's `swimlane_converter.py` writes a lane `AIC_0` or `AIV_24` for each core in "Worker View"
(earlier "AICore View"), with blocks that have a `taskId`, and arrows from a task to the tasks that
depend on it. "Scheduler View" (earlier "AICPU View") has the same blocks from their dispatch on.
The converter of its decentralised scheduler writes a process for each group, `block0`, with lanes
`AIC (core0)`, `AIV0 (core24)` and `AIV1 (core25)` for the scalar units, and `AIC·kernel (core0)` if
kernels have lanes of their own.

These lanes are converted to the records of a swimlane, and the swimlane reader makes the tables.

The formats: hw-native-sys/simpler, `simpler_setup/tools/swimlane_converter.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from stepscope.ingest.derive.axis import different
from stepscope.ingest.limits import DEFAULTS
from stepscope.ingest.readers.chrome.arrows import tied
from stepscope.ingest.readers.swimlane.decode import LAST_NUMBER, Tally
from stepscope.ingest.readers.swimlane.tables import tables
from stepscope.ingest.storage.spool import Spool, unpacked

SWIMLANE = "simpler (exported swimlane)"
MOST_CORES = 1 << 16
_VIEW = re.compile(
    r"(?P<view>Worker|AICore|Machine|Scheduler|AICPU) View\b.* / (?P<kind>AIC|AIV)"
    r"_(?P<core>\d{1,6})"
    r"(?: \d+)?(?: #\d+)?"
)
_NAMED = re.compile(
    r"(?:(?P<process>.*) / )?(?P<kind>AIC|AIV[01]?)(?P<kernel>·kernel)? ?"
    r"\(core[ _]?(?P<core>\d{1,6})\)(?: \d+)?(?: #\d+)?"
)
_BLOCK = re.compile(r"block ?(\d{1,6})(?: \d+)?")
_DISPATCHED = ("Scheduler", "AICPU")
_OF_SCHEDULER = re.compile(r"(?:Scheduler|AICPU) View\b")
_SCALAR = (
    r"^(?:claim|submit|fanin|register|atomic|dcci|clock|alloc|build|drain|replay|ringbp|efdrain"
    r"|commit|materialize|prepare_map|orchestration_replay|final_drain)(?:[._][\w.]*)?(?:[#×]|$)"
)
"""Names of a scalar unit's phases (finding, claiming, retiring tasks), which are no kernels."""
_TASK = r'"(?:taskId|task_id)"\s*:\s*"?(\d{1,19})\b'
_SETUP = r'"local_setup_us"\s*:\s*(\d{1,15}(?:\.\d{1,12})?)'
_IS_KERNEL = r'"phase"\s*:\s*"kernel"'
_IN_NAME = r"(?:#(\d{1,18})|\((?:r(\d{1,4}))?t?(\d{1,18})\))$"
KINDS, NUMBERLESS, PARTIAL = (
    "kinds and groups of cores from the numbers of those that ran something",
    "tasks without a number, one for each block",
    "an exported swimlane has only what ran on cores; tasks that never ran are not in it",
)


@dataclass(frozen=True, slots=True)
class CoreLane:
    """A lane of a core: its number, its kind (AIC, AIV, AIV0, AIV1), and its group if named.

        `role` is "block" for lanes with blocks, "dispatch" for blocks as the scheduler saw them,
    and "scalar" for everything else that a core did.
    """

    base: str
    core: int
    kind: str
    group: int | None
    role: str


@dataclass(frozen=True, slots=True)
class CoreTables:
    """Tables of core groups, the device's description, counts of inferred values, and notes.

    `rows` are the rows of `spans` that became blocks and have to be removed from `spans`.
    """

    tables: dict[str, pl.DataFrame]
    rows: pl.Series
    device: dict[str, Any]
    inferred: dict[str, int]
    notes: tuple[str, ...]


def core_tables(
    spans: pl.DataFrame, flows: pl.DataFrame, args: Spool, metadata: Mapping[str, Any]
) -> CoreTables | None:
    """Return the tables of blocks on lanes that are named after cores, or None without any.

    `spans`, `flows` and `args` are those of `chrome_tables`.
    """
    lanes = _lanes(different(spans["base"]))
    if not lanes:
        return None
    rows = _rows(spans, lanes, args)
    blocks = _blocks(rows)
    if blocks.is_empty():
        return None
    types = _core_types(lanes, metadata)
    dispatches = _with_tasks(rows.filter(pl.col("role") == "dispatch"))
    ran = blocks.select("core", "task").unique()
    dispatches = dispatches.join(ran, on=["core", "task"], how="semi")
    tally = Tally(DEFAULTS)
    core_kinds = types or [_plain_kind(lane.kind) for lane in _by_core(lanes)]
    made = tables(
        _records(blocks, dispatches, core_kinds),
        {"edges": _edges(blocks, flows, spans)}, {}, [], tally,
    )  # fmt: skip
    made["tasks"] = _named(made["tasks"], blocks)
    if not types:
        made["core_spans"] = _ungrouped(made["core_spans"], lanes)
    made.pop("spans", None)
    made.pop("counters", None)
    if num := blocks["is_numberless"].sum():
        tally.inferred[NUMBERLESS] += int(num)
    tally.inferred[KINDS] += len({lane.core for lane in lanes})
    device = {"num_cores": len(types), "core_types": types} if types else {}
    filled = {name: frame for name, frame in made.items() if len(frame)}
    block_rows = pl.concat([blocks["row"], dispatches["row"]])
    return CoreTables(filled, block_rows, device, dict(tally.inferred), (PARTIAL,))


def _lanes(bases: Iterable[str]) -> list[CoreLane]:
    lanes = [lane for base in bases if (lane := _lane(base)) and lane.core < MOST_CORES]
    if any(lane.role == "kernel" for lane in lanes):
        roles = {"kernel": "block", "named": "scalar"}
    else:
        roles = {"named": "block"}
    return [replace(lane, role=roles.get(lane.role, lane.role)) for lane in lanes]


def _lane(base: str) -> CoreLane | None:
    if match := _VIEW.fullmatch(base):
        role = "dispatch" if match["view"] in _DISPATCHED else "block"
        return CoreLane(base, int(match["core"]), match["kind"], None, role)
    if match := _NAMED.fullmatch(base):
        block = _BLOCK.fullmatch(match["process"] or "")
        group = int(block[1]) if block else None
        role = "kernel" if match["kernel"] else "named"
        if _OF_SCHEDULER.match(match["process"] or ""):
            role = "dispatch"
        return CoreLane(base, int(match["core"]), match["kind"], group, role)
    return None


def _rows(spans: pl.DataFrame, lanes: list[CoreLane], args: Spool) -> pl.DataFrame:
    """Return the slices on lanes of cores, with their core and the values in their args."""
    cores = pl.DataFrame(
        [(lane.base, lane.core, lane.role) for lane in lanes],
        schema={"base": pl.String, "core": pl.Int64, "role": pl.String}, orient="row",
    )  # fmt: skip
    arguments = unpacked("args", args.parts).select(
        task=pl.col("args").str.extract(_TASK).cast(pl.Int64, strict=False),
        setup=pl.col("args").str.extract(_SETUP).cast(pl.Float64),
        is_kernel=pl.col("args").str.contains(_IS_KERNEL).fill_null(value=False),
    )
    columns = spans.select(
        pl.col("base", "name").cast(pl.String), "form", "ts_ns", "dur_ns", "parent"
    )
    both = pl.concat([columns.with_row_index("row"), arguments.collect()], how="horizontal")
    is_slice = (pl.col("form") == "slice") & (pl.col("ts_ns") >= 0)
    return both.filter(is_slice, pl.col("dur_ns").is_not_null()).join(cores, on="base")


def _blocks(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the slices that are blocks, with their task's number and name, and their start."""
    blocks = rows.filter(pl.col("role") == "block")
    if blocks["is_kernel"].any():
        blocks = blocks.filter("is_kernel")
    blocks = blocks.filter(~pl.col("name").str.contains(_SCALAR))
    inner = blocks.join(blocks.select(parent="row"), on="parent", how="semi")
    blocks = blocks.join(inner.select("row"), on="row", how="anti")
    return _with_tasks(blocks).with_columns(
        start=pl.min_horizontal(
            pl.col("ts_ns") + (pl.col("setup").fill_null(0) * 1000).round().cast(pl.Int64), "end"
        )
    )


def _with_tasks(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the task's number, from the args or the name, and the name without it."""
    parts = pl.col("name").str.extract_groups(_IN_NAME)
    plain, ring, local = (parts.struct[at].cast(pl.Int64, strict=False) for at in range(3))
    in_name = pl.coalesce(plain, ring.fill_null(0) * (1 << 32) + local)
    free = LAST_NUMBER - rows.height
    return rows.with_columns(
        task=pl.coalesce("task", in_name), end=pl.col("ts_ns") + pl.col("dur_ns")
    ).with_columns(
        is_numberless=pl.col("task").is_null(),
        task=pl.coalesce("task", free + pl.int_range(pl.len())),
        kernel=pl.col("name").str.replace(_IN_NAME, ""),
    )


def _records(blocks: pl.DataFrame, dispatches: pl.DataFrame, types: list[str]) -> dict[str, Any]:
    """Return the records of the runtime, with cycles of 1 ns; a task is its own register."""
    executed = blocks.select("core", "task", pl.col("task").alias("register"), "start", "end")
    aicpu = dispatches.select("core", "task", "ts_ns", "end")
    return {
        "metadata": {"clock_freq_hz": 1_000_000_000, "core_types": types},
        "aicore_tasks": [list(row) for row in executed.iter_rows()],
        "aicpu_tasks": [list(row) for row in aicpu.iter_rows()],
    }


def _edges(blocks: pl.DataFrame, flows: pl.DataFrame, spans: pl.DataFrame) -> list[dict[str, int]]:
    """Return dependencies: arrows from a block of one task to a block of another."""
    if flows.is_empty():
        return []
    starts, finishes = tied(flows, spans)
    ends = pl.DataFrame({"from": starts, "to": finishes}).cast(pl.UInt32)
    tasks = blocks.select("row", "task")
    edges = (
        ends.join(tasks.rename({"row": "from", "task": "pred"}), on="from")
        .join(tasks.rename({"row": "to", "task": "succ"}), on="to")
        .filter(pl.col("pred") != pl.col("succ"))
        .select("pred", "succ")
        .unique(maintain_order=True)
    )
    return edges.to_dicts()


def _named(tasks: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """Name tasks after their blocks: a MIX has a name for each kind of core."""
    kernels = blocks.filter(~pl.col("kernel").is_in(["task", ""])).sort("core")
    names = kernels.group_by("task").agg(
        kernels=pl.col("kernel").unique(maintain_order=True).str.join(" + ")
    )
    return (
        tasks.join(names, on="task", how="left", maintain_order="left")
        .with_columns(name=pl.coalesce("kernels", "name"))
        .drop("kernels")
    )


def _plain_kind(kind: str) -> str:
    return kind[:3].lower()


def _by_core(lanes: list[CoreLane]) -> list[CoreLane]:
    """Return a lane for each core up to the last; lanes of unused cores have no kind."""
    by_core = {lane.core: lane for lane in lanes}
    none = CoreLane("", 0, "", None, "")
    return [by_core.get(core, none) for core in range(max(by_core) + 1)]


def _core_types(lanes: list[CoreLane], metadata: Mapping[str, Any]) -> list[str]:
    """Return the kind of every core, from the file or from the numbers of the cores that ran.

        Either the N AICs come first, and group g has the AIVs N + 2g and N + 2g + 1; or the three
    cores of a group have successive numbers. Empty if the lanes fit neither.
    """
    capture = metadata.get("metadata")
    types = capture.get("core_types") if isinstance(capture, dict) else None
    if isinstance(types, list) and len(types) > max(lane.core for lane in lanes):
        plain = [kind.lower() if isinstance(kind, str) else "" for kind in types]
        if all(kind in ("aic", "aiv") for kind in plain):
            return plain
    num = _num_groups(lanes)
    if num and all(_fits(lane, num) for lane in lanes):
        return ["aic"] * num + ["aiv", "aiv"] * num
    places = {"AIC": (0,), "AIV0": (1,), "AIV1": (2,), "AIV": (1, 2)}
    if all(
        lane.core % 3 in places[lane.kind] and lane.group in (None, lane.core // 3)
        for lane in lanes
    ):
        return ["aic", "aiv", "aiv"] * (1 + max(lane.core for lane in lanes) // 3)
    return []


def _num_groups(lanes: list[CoreLane]) -> int:
    """Return the number of groups if all AICs come first; 0 if it is not known."""
    aivs = [lane for lane in lanes if lane.kind != "AIC"]
    if not aivs:
        return 1 + max(lane.core for lane in lanes)
    grouped = next((lane for lane in aivs if lane.group is not None), None)
    first = grouped or min(aivs, key=lambda lane: lane.core)
    return first.core - 2 * (first.group or 0) - (first.kind == "AIV1")


def _fits(lane: CoreLane, num: int) -> bool:
    if lane.kind == "AIC":
        return lane.core < num and lane.group in (None, lane.core)
    group, place = divmod(lane.core - num, 2)
    is_place = lane.kind in ("AIV", f"AIV{place}")
    return 0 <= group < num and is_place and lane.group in (None, group)


def _ungrouped(blocks: pl.DataFrame, lanes: list[CoreLane]) -> pl.DataFrame:
    """Return blocks with only the kind and group that their lanes name."""
    kinds = {lane.core: lane.kind if lane.kind != "AIV" else None for lane in lanes}
    groups = {lane.core: lane.group for lane in lanes}
    return blocks.with_columns(
        core_kind=pl.col("core").replace_strict(kinds, return_dtype=pl.String),
        group=pl.col("core").replace_strict(groups, return_dtype=pl.Int32),
    )
