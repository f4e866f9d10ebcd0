"""The state of the engine at a step, told from its rows alone."""

from __future__ import annotations

from typing import Any

from tests.engine.rows import Row, Rows


def state_at(
    rows: Rows, step: int, *, has_slots: bool = False, has_blocks: bool = True
) -> dict[str, Any]:
    """Return what `Engine.snapshot` gave when the batch of `step` had been formed."""
    (formed_ns,) = [row["ts_ns"] for row in rows.of("steps", step=step)]
    waiting, running = _queues(_until(rows, "lifecycle", formed_ns))
    allocations = _until(rows, "allocations", formed_ns)
    slots = {"slots": _owners(allocations, "slot")} if has_slots else {}
    blocks = {"kv_blocks": _owners(allocations, "kv-block")} if has_blocks else {}
    return {
        "ts_ns": formed_ns,
        "step": step,
        "waiting": waiting,
        "running": running,
        "batch": [
            [row["request"], row["phase"], row["num_tokens"]]
            for row in rows.of("batch_rows", step=step)
        ],
        **blocks,
        **slots,
    }


def _until(rows: Rows, table: str, ts_ns: int) -> list[Row]:
    in_order = sorted(rows.tables[table], key=lambda row: row["ts_ns"])
    return [row for row in in_order if row["ts_ns"] <= ts_ns]


def _queues(events: list[Row]) -> tuple[list[str], list[str]]:
    waiting: list[str] = []
    running: list[str] = []
    for row in events:
        if row["event"] == "first-token":
            continue
        for queue in (waiting, running):
            if row["request"] in queue:
                queue.remove(row["request"])
        if row["queue_index"] is not None:
            waiting.insert(row["queue_index"], row["request"])
        elif row["event"] in {"admit", "resume"}:
            running.append(row["request"])
    return waiting, running


def _owners(events: list[Row], resource: str) -> dict[int, str]:
    """The first of those who use each: who claimed it, or has shared it for longest."""
    users: dict[int, list[str]] = {}
    for row in events:
        if row["resource"] == resource and row["op"] == "release":
            users[row["id"]].remove(row["owner"])
        elif row["resource"] == resource:
            assert row["op"] == "share" or not users.get(row["id"])
            users.setdefault(row["id"], []).append(row["owner"])
    return {number: names[0] for number, names in users.items() if names}
