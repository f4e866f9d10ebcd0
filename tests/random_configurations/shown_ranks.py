"""Whether a fault of a device or of several ranks shows in a trace at all, told from the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.random_configurations.count_cores import NEVER, blocks
from tests.random_configurations.shown_requests import Shown
from tests.random_configurations.tables import Row, Tables, grouped


def wrong_core(tables: Tables) -> bool:
    """A part runs on a core of another group or kind than it was built for."""
    groups = tables.config["settings"]["groups"]

    def place(core: int) -> tuple[int, str]:
        return (
            (core, "AIC") if core < groups else ((core - groups) // 2, f"AIV{(core - groups) % 2}")
        )

    return any(
        place(row["core"]) != (row["group"], row["core_kind"]) for row in tables["core_spans"]
    )


def left_pending(tables: Tables) -> bool:
    """Tasks of a step never retired, and the step is over."""
    return any(row["outcome"] == "pending" for row in tables["tasks"])


def told_to_have_run(tables: Tables) -> bool:
    """A task is told to have run, and no core ran a block of it."""
    ran = {row["task"] for row in tables["core_spans"]}
    return any(row["outcome"] == "run" and row["task"] not in ran for row in tables["tasks"])


def two_on_a_core(tables: Tables) -> bool:
    """Two blocks run on one core at once."""
    for spans in grouped(tables["core_spans"], lambda row: row["core"]).values():
        until_ns = -1
        for row in sorted(spans, key=lambda row: row["ts_ns"]):
            if row["ts_ns"] < until_ns:
                return True
            until_ns = max(until_ns, row["end_ns"] or NEVER)
    return False


def before_its_predecessor(tables: Tables) -> bool:
    """A task begins before one has ended that it waits for."""
    began: dict[int, int] = {}
    ended: dict[int, int] = {}
    for row in tables["core_spans"]:
        task = row["task"]
        began[task] = min(began.get(task, NEVER), row["ts_ns"])
        ended[task] = max(ended.get(task, -1), row["end_ns"] or NEVER)
    return any(
        began[edge["to_task"]] < ended[edge["from_task"]]
        for edge in tables["task_edges"]
        if edge["to_task"] in began and edge["from_task"] in ended
    )


def mix_overtaken(tables: Tables) -> bool:
    """A MIX waited while two younger blocks were dispatched to every core that takes such."""
    singles = [row for shape in ("AIC", "AIV") for (row,) in blocks(tables, shape)]
    num_cores = len({row["core"] for row in singles})
    return any(
        sum(row["ready_ns"] > parts[0]["ready_ns"] and row["dispatch_ns"] < parts[0]["dispatch_ns"]
            for row in singles) > 2 * num_cores
        for parts in blocks(tables, "MIX")
    )  # fmt: skip


def started_in_part(tables: Tables) -> bool:
    """Blocks of a task that starts together were dispatched at different times."""
    together = {row["task"] for row in tables["tasks"] if row["is_sync_start"]}
    spans = (row for row in tables["core_spans"] if row["task"] in together)
    tasks = grouped(spans, lambda row: row["task"]).values()
    return any(len({row["dispatch_ns"] for row in rows}) > 1 for rows in tasks)


def collectives_differ(tables: Tables) -> bool:
    """Two ranks come to one place of a sequence with different operations."""
    return any(len({row["op"] for row in rows}) > 1 for rows in _places(tables))


def _places(tables: Tables) -> Iterator[list[Row]]:
    yield from grouped(tables["collectives"], lambda row: (row["group"], row["ordinal"])).values()


def logits_differ(tables: Tables) -> bool:
    """A token was sampled from other logits than the request has alone."""
    return any(
        row["digest"] != row["solo_digest"] for row in tables["outputs"] if row["solo_digest"]
    )


def copied_unordered(tables: Tables) -> bool:
    """The copy stream takes logits, and has waited for nothing since they were computed."""
    is_ordered = True
    for row in tables["accesses"]:
        if row["stream"] == "compute" and row["op"] == "write" and row["buffer"] == "logits":
            is_ordered = False
        elif row["stream"] == "copy" and row["op"] == "wait":
            is_ordered = True
        elif row["stream"] == "copy" and row["buffer"] == "logits" and not is_ordered:
            return True
    return False


def slots_disagree(tables: Tables) -> bool:
    """A worker has in a slot what the head has in another one."""
    return any(
        row["rank"] > 0 and row["op"] == "claim" and row["owner"] != f"slot {row['id']}"
        for row in tables["allocations"]
    )


def slot_not_there(tables: Tables) -> bool:
    """A worker is given a command for a slot that it never claimed."""
    claimed = {
        (row["rank"], row["id"]) for row in tables["allocations"] if row["op"] == "claim"
    }  # fmt: skip
    return any(
        row["rank"] > 0 and row["slot"] is not None and (row["rank"], row["slot"]) not in claimed
        for row in tables["collectives"]
        if row["command"] == "slot"
    )


def moved_alone(tables: Tables) -> bool:
    """The head moved a request, and no worker did."""
    ranks = {row["rank"] for row in tables["allocations"]}
    return {row["rank"] for row in tables["allocations"] if row["op"] == "move"} == {0} < ranks


def word_as_slot(tables: Tables) -> bool:
    """A slot is a negative number: one of the words that mean a command."""
    return any((row["slot"] or 0) < 0 for row in tables["collectives"])


def versions_differ(tables: Tables) -> bool:
    """Two ranks speak different versions."""
    versions = {row["value"] for row in tables["counters"] if row["name"] == "protocol version"}
    return len(versions) > 1


def alone_and_talking(tables: Tables) -> bool:
    """One rank, and collectives."""
    num_ranks: int = tables.config["parallel"]["world_size"]
    return num_ranks == 1 and bool(tables["collectives"])


def scratch_of_two(tables: Tables) -> bool:
    """Two rows of a step use the same scratch."""
    rows = (row for row in tables["accesses"] if row["buffer"] == "moe-scratch")
    places = grouped(rows, lambda row: (row["rank"], row["step"], row["first"])).values()
    return any(len({row["segment"] for row in each}) > 1 for each in places)


def never_fused(tables: Tables) -> bool:
    """Two or three rows were decoded, and never by the path that is made for them."""
    paths = [
        row["executed_path"] or "" for row in tables["steps"]
        if row["rank"] == 0 and row["num_decode_reqs"] in {2, 3} and not row["num_prefill_reqs"]
    ]  # fmt: skip
    return bool(paths) and not any("fused" in path for path in paths)


def last_again_and_again(tables: Tables) -> bool:
    """In ten all-reduces one rank waits for the other."""
    waits: list[int] = [
        max(row["ts_ns"] for row in rows) - min(row["ts_ns"] for row in rows)
        for rows in _places(tables)
        if len(rows) > 1 and rows[0]["op"] == "all-reduce"
    ]
    return sum(wait > 1_000 for wait in waits) >= 10


SHOWN: Mapping[str, Shown] = {
    "mix-shift-wrap": wrong_core,
    "lost-ring-advance": left_pending,
    "predicate-of-the-one-before": told_to_have_run,
    "stale-reservation": two_on_a_core,
    "pop-returns-consumed-slot": before_its_predecessor,
    "deferred-completion-lost": left_pending,
    "left-over-mix-ignored": mix_overtaken,
    "sync-start-in-part": started_in_part,
    "late-part-overwrites-tile": logits_differ,
    "late-part-hangs": left_pending,
    "preambles-up-front": collectives_differ,
    "every-row-samples-row-0": logits_differ,
    "copy-on-unordered-stream": copied_unordered,
    "slot-order-differs": slots_disagree,
    "slot-order-refused": slots_disagree,
    "slots-not-allocated": slot_not_there,
    "compaction-on-one-side": moved_alone,
    "sentinel-as-slot": word_as_slot,
    "v1-head-v2-worker": versions_differ,
    "v2-head-v1-worker": versions_differ,
    "collective-at-world-size-1": alone_and_talking,
    "state-not-cleared": logits_differ,
    "scratch-shared": scratch_of_two,
    "full-accept-not-trimmed": logits_differ,
    "path-never-reached": never_fused,
    "slow-worker": last_again_and_again,
}
