"""What the rules of cores say, counted again from `tasks` and `core_spans`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from math import isclose
from typing import Any

from stepscope.analyzers.findings.finding import Finding
from tests.random_configurations.tables import Row, Tables, grouped

GRACE_NS = 2_000  # what a pass of a scheduler takes, by the pages of COR005 and COR006
NEVER = 1 << 60


def split_mix(tables: Tables, found: Finding) -> bool:
    """COR001: a part of the block takes an idle core, while another core of it runs another.

    What is not listed one by one is as many such blocks as there are beside those that are.
    """
    if "more" in found.evidence:
        split = sum(_is_split(tables, parts) for parts in blocks(tables, "MIX"))
        return split - int(found.evidence["listed"] or 0) == found.evidence["more"] == found.count
    return any(
        _is_split(tables, parts)
        for parts in blocks(tables, "MIX")
        if (parts[0]["task"], parts[0]["group"]) == (found.task, found.group)
    )


def _is_split(tables: Tables, parts: list[Row]) -> bool:
    takes_one = any(part["slot"] == "running" for part in parts)
    return takes_one and any(_holders(tables, part) for part in parts)


def skewed_parts(tables: Tables, found: Finding) -> bool:
    """COR003: as many blocks of the kernel whose parts start apart by a tenth of their length."""
    kernel = found.message.partition(":")[0]
    names = {row["task"]: kernel_of(row["name"]) for row in tables["tasks"]}
    skews = [
        (max(starts) - min(starts), max(ends) - min(starts))
        for parts in blocks(tables, "MIX")
        if names[parts[0]["task"]] == kernel
        for starts, ends in [_times(parts)]
    ]
    skewed = [(skew, length) for skew, length in skews if skew > 0.1 * length]
    worst = (found.evidence["worst_skew_ns"], found.evidence["worst_length_ns"])
    return len(skewed) == found.count and worst in skewed


def overtaken(tables: Tables, found: Finding) -> bool:
    """COR004: so many single-core blocks were ready after the MIX and dispatched before it."""
    singles = [row for shape in ("AIC", "AIV") for (row,) in blocks(tables, shape)]
    since, until = found.ts_ns or 0, found.end_ns or 0
    num_younger = len([r for r in singles if since < r["ready_ns"] and r["dispatch_ns"] < until])
    return num_younger >= int(found.evidence["overtaken by at least"] or 0) > 0


def pending_beside_idle(tables: Tables, found: Finding) -> bool:
    """COR005: so much time of cores was lost to blocks in pending slots."""
    shape = _shape(found)
    waits = [
        (min(part["dispatch_ns"] for part in parts) + GRACE_NS, max(p["ts_ns"] for p in parts))
        for parts in blocks(tables, shape)
        if any(part["slot"] == "pending" for part in parts)
    ]
    return _is_lost(tables, shape, waits, found)


def ready_beside_idle(tables: Tables, found: Finding) -> bool:
    """COR006: so much time of cores was lost to blocks that were ready and not dispatched."""
    shape = _shape(found)
    together = {row["task"] for row in tables["tasks"] if row["is_sync_start"]}
    waits = [
        (parts[0]["ready_ns"] + GRACE_NS, min(part["dispatch_ns"] for part in parts))
        for parts in blocks(tables, shape)
        if parts[0]["task"] not in together
    ]
    return _is_lost(tables, shape, waits, found)


def dispatched_long(tables: Tables, found: Finding) -> bool:
    """COR009: blocks of the shape waited longer, ready and with their core free, than they ran."""
    shape = _shape(found)
    overhead_ns = executed_ns = 0
    for spans in grouped(tables["core_spans"], lambda row: row["core"]).values():
        free_ns = 0
        for row in sorted(spans, key=lambda row: (row["ts_ns"], row["end_ns"] or NEVER)):
            if row["shape"] == shape and row["end_ns"] is not None:
                overhead_ns += max(0, row["ts_ns"] - max(row["ready_ns"], free_ns))
                executed_ns += row["end_ns"] - row["ts_ns"]
            free_ns = max(free_ns, row["end_ns"] or NEVER)
    told = (found.evidence["dispatch_ns"], found.evidence["executed_ns"])
    return bool((overhead_ns, executed_ns) == told and overhead_ns > executed_ns)


def stalled(tables: Tables, found: Finding) -> bool:
    """COR010: so many tasks of the step never got anywhere, and the step is over."""
    left = [
        row for row in tables["tasks"]
        if row["step"] == found.step and row["outcome"] == "pending"
    ]  # fmt: skip
    steps = [row for row in tables["steps"] if row["step"] == found.step]
    is_over = all(row["dur_ns"] is not None for row in steps)
    return bool(left) and is_over and len(left) == found.evidence["tasks left"]


def computed_on_others(tables: Tables, found: Finding) -> bool:
    """COR013: a block of the task read something else than its own had written there."""
    wrong = wrong_blocks(tables)
    if found.task is None:  # the rest, not listed one by one
        return len(wrong) - found.count == found.evidence["listed"]
    return found.task in {task for task, _ in wrong}


@cache
def wrong_blocks(tables: Tables) -> frozenset[tuple[int, int]]:
    """Blocks that read in a core's memory what no part of them wrote, by their contents."""
    spans = sorted(tables["core_spans"], key=lambda row: row["ts_ns"])
    running = grouped(spans, lambda row: f"core {row['core']}")
    touched = [row for row in tables["accesses"] if row["op"] in {"read", "write"}]
    own: dict[tuple[str, tuple[int, int]], str] = {}
    wrong = set()
    for row in sorted(touched, key=lambda row: (row["ts_ns"], row["op"] == "write")):
        on_core = running[row["stream"]]
        last = on_core[bisect_right(on_core, row["ts_ns"], key=lambda row: row["ts_ns"]) - 1]
        block = last["task"], last["block"]
        if row["op"] == "write":
            own[row["buffer"], block] = row["digest"]
        elif own.get((row["buffer"], block)) != row["digest"]:
            wrong.add(block)
    return frozenset(wrong)


def read_unordered(tables: Tables, found: Finding) -> bool:
    """BUF003: the stream read what the other wrote, and did not know that it had."""
    if "more" in found.evidence:
        return found.evidence["more"] == found.count > 0
    reader, writer = str(found.evidence["read by"]), str(found.evidence["written by"])
    order = {"wait": 0, "read": 1, "write": 2, "record": 3}
    knows: dict[str, dict[str, int]] = defaultdict(dict)
    recorded: dict[str, dict[str, int]] = {}
    written_ns, num_unordered = -1, 0
    for row in sorted(tables["accesses"], key=lambda row: (row["ts_ns"], order[row["op"]])):
        stream, is_there = row["stream"], row["buffer"] == found.evidence["buffer"]
        if row["op"] == "record":
            recorded[row["event"]] = knows[stream] | {stream: row["ts_ns"]}
        elif row["op"] == "wait":
            for each, ts_ns in recorded.get(row["event"], {}).items():
                knows[stream][each] = max(knows[stream].get(each, -1), ts_ns)
        elif is_there and (stream, row["op"]) == (writer, "write"):
            written_ns = row["ts_ns"]
        elif is_there and (stream, row["op"]) == (reader, "read"):
            num_unordered += knows[reader].get(writer, -1) < written_ns
    # How often is not the same where one waits for an event that is recorded only later.
    return num_unordered > 0 and found.count == found.evidence["reads"]


def sampled_otherwise(tables: Tables, found: Finding) -> bool:
    """EQV001: so many tokens of the request were sampled from other logits than they are alone."""
    differ = (row["request"] for row in tables["outputs"] if row["digest"] != row["solo_digest"])
    return Counter(differ)[found.request or ""] == found.count


def blocks(tables: Tables, shape: str) -> Iterator[list[Row]]:
    """The parts of each block of a shape; blocks of single cores have one."""
    rows = (row for row in tables["core_spans"] if row["shape"] == shape)
    yield from grouped(
        rows, lambda row: (row["task"], row["block"], row["core"] * (shape != "MIX"))
    ).values()


def kernel_of(name: str) -> str:
    """A task's name without the numbers in it."""
    return re.sub(r"\d+", "*", name)


def _shape(found: Finding) -> str:
    match = re.search(r"\b(AIC|AIV|MIX) blocks", found.message)
    assert match
    return match[1]


def _times(parts: Iterable[Row]) -> tuple[list[int], list[int]]:
    return [part["ts_ns"] for part in parts], [part["end_ns"] or NEVER for part in parts]


def _holders(tables: Tables, part: Row) -> list[Row]:
    """What the core of a part runs when the part is given to it."""
    return [
        row for row in tables["core_spans"]
        if row["core"] == part["core"]
        and (row["task"], row["block"]) != (part["task"], part["block"])
        and row["dispatch_ns"] < part["dispatch_ns"] < (row["end_ns"] or NEVER)
    ]  # fmt: skip


def _is_lost(tables: Tables, shape: str, waits: list[tuple[int, int]], found: Finding) -> bool:
    members = _members(tables, shape)
    lost_ns = _lost_ns(members, waits)
    share = lost_ns / (len(members) * _used_ns(tables, shape))
    told = float(found.evidence["idle_share"] or 0)
    return lost_ns == found.evidence["lost_ns"] and isclose(share, told, abs_tol=1e-4)


def _members(tables: Tables, shape: str) -> Mapping[Any, list[tuple[int, int]]]:
    """The cores, or groups, that a block of the shape takes: from when to when they are held."""
    num_groups = tables.config["settings"]["groups"]
    by = "group" if shape == "MIX" else "core"
    kinds = {"AIC": range(num_groups), "AIV": range(num_groups, 3 * num_groups)}
    held: dict[int, list[tuple[int, int]]] = {
        unit: [] for unit in kinds.get(shape, range(num_groups))
    }
    for row in tables["core_spans"]:
        unit = row["core"] if by == "core" else _group_of(row["core"], num_groups)
        if unit in held:
            held[unit].append((row["dispatch_ns"], (row["end_ns"] or NEVER) + GRACE_NS))
    return held


def _group_of(core: int, num_groups: int) -> int:
    return core if core < num_groups else (core - num_groups) // 2


def _lost_ns(members: Mapping[Any, list[tuple[int, int]]], waits: list[tuple[int, int]]) -> int:
    """Add up, over time, the smaller one of how many are idle and how many wait."""
    changes: list[tuple[int, int, int]] = []
    for since, until in waits:
        if since < until:
            changes += [(since, 0, 1), (until, 0, -1)]
    for held in members.values():
        for since, until in _joined(held):
            changes += [(since, -1, 0), (until, 1, 0)]
    num_idle, num_waiting, before, lost_ns = len(members), 0, 0, 0
    for now, idle, waiting in sorted(changes):
        lost_ns += (now - before) * min(num_idle, num_waiting)
        num_idle, num_waiting, before = num_idle + idle, num_waiting + waiting, now
    return lost_ns


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for since, until in sorted(spans):
        if joined and since <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], until))
        else:
            joined.append((since, until))
    return joined


def _used_ns(tables: Tables, shape: str) -> int:
    """How long steps with blocks of the shape took, from the first ready to the last end."""
    used_ns = 0
    for spans in grouped(tables["core_spans"], lambda row: row["step"]).values():
        if any(row["shape"] == shape for row in spans):
            ends = [row["end_ns"] for row in spans if row["end_ns"] is not None]
            used_ns += max(ends) - min(row["ready_ns"] for row in spans)
    return used_ns


COUNTS: Mapping[str, Callable[[Tables, Finding], bool]] = {
    "COR001": split_mix,
    "COR003": skewed_parts,
    "COR004": overtaken,
    "COR005": pending_beside_idle,
    "COR006": ready_beside_idle,
    "COR009": dispatched_long,
    "COR010": stalled,
    "COR013": computed_on_others,
    "BUF003": read_unordered,
    "EQV001": sampled_otherwise,
}
