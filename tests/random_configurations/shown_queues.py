"""Whether a fault of a waiting loop shows in a trace at all, told from its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from tests.random_configurations.count_requests import ENDS, ENTERS
from tests.random_configurations.shown_batches import prompts_alone
from tests.random_configurations.shown_requests import OFTEN, Shown
from tests.random_configurations.tables import Row, Tables, grouped


def slot_free_and_taken(tables: Tables) -> bool:
    """Many steps of decodes in a row with room in pool, budget and batch, and one waited."""
    streak = 0
    for row in tables["steps"]:
        has_room = (
            row["num_running"] < tables.config["engine"]["max_num_seqs"]
            and row["kv_blocks_free"] >= 0.5 * row["kv_blocks_total"]
            and row["num_decode_tokens"] <= 0.5 * row["token_budget"]
        )
        waits = row["num_waiting"] and not row["num_prefill_tokens"]
        streak = streak + 1 if has_room and waits else 0
        if streak > OFTEN:
            return True
    return False


def ready_in_vain(tables: Tables) -> bool:
    """Somebody was ready for many steps before anything but his place in the queue was told."""
    starts = sorted(row["ts_ns"] for row in tables["steps"])
    for row in tables["lifecycle"]:
        if row["event"] == "ready":
            noticed = min(_noticed(tables, row), default=1 << 62)
            if sum(row["ts_ns"] <= each < noticed for each in starts) > OFTEN:
                return True
    return False


def _noticed(tables: Tables, ready: Row) -> Iterator[int]:
    for row in tables.events[ready["request"]]:
        if row["event"] != "ready" and row["ts_ns"] >= ready["ts_ns"]:
            yield row["ts_ns"]
    for row in tables["decisions"]:
        is_about = row["subject"] == ready["request"] and row["resource"] != "queue"
        if is_about and row["ts_ns"] >= ready["ts_ns"]:
            yield row["ts_ns"]


def held_back_with_room(tables: Tables) -> bool:
    """Somebody stood behind one that lacked blocks, three times as long as he was in batches."""
    size = tables.config["engine"]["block_size"]
    return any(
        _stood_ns(tables, request, -(-arrived["prompt_len"] // size)) > 3 * _served(tables, request)
        for request, arrived in tables.arrivals.items()
    )


def _stood_ns(tables: Tables, request: str, needed: int) -> int:
    """How long he waited in all while the head lacked blocks, with as many free as he needs."""
    heads = {
        row["subject"] for row in tables.decisions("deferred") if row["resource"] == "kv-block"
    }
    behind = [
        row for row in tables.decisions("deferred")
        if row["subject"] == request and row["resource"] == "queue" and row["holder"] in heads
    ]  # fmt: skip
    let_in = [row["ts_ns"] for row in tables.events[request] if row["event"] in ENTERS | ENDS]
    if not behind or not let_in:
        return 0
    head = behind[0]["holder"]
    left = [row["ts_ns"] for row in tables.events[head] if row["event"] in ENTERS | ENDS]
    until = min(let_in[0], *left)
    return sum(
        row["dur_ns"] for row in tables["steps"]
        if behind[0]["ts_ns"] <= row["ts_ns"] < until and row["kv_blocks_free"] >= needed
    )  # fmt: skip


def _served(tables: Tables, request: str) -> float:
    """How long he was in batches; for one who was in none, the median of those who were."""
    steps = {row["step"]: row["dur_ns"] for row in tables["steps"]}
    rows = grouped(tables["batch_rows"], lambda row: row["request"])
    served = {name: sum(steps[row["step"]] for row in of) for name, of in rows.items()}
    return float(served.get(request, median(served.values() or [1 << 62])))


def passed_and_passed(tables: Tables) -> bool:
    """Somebody who lacked blocks was passed by more than two times OFTEN younger ones."""
    lacking = {
        row["subject"] for row in tables.decisions("deferred") if row["resource"] == "kv-block"
    }
    entered = {
        request: min((row["ts_ns"] for row in events if row["event"] in ENTERS), default=1 << 62)
        for request, events in tables.events.items()
    }
    return any(
        sum(
            tables.age(other) > tables.age(request) and ts_ns < entered[request]
            for other, ts_ns in entered.items()
        ) > 2 * OFTEN
        for request in lacking
    )  # fmt: skip


def holders_wait(tables: Tables) -> bool:
    """Many idle steps with most blocks held, by more than one, none of whom runs."""
    idle = [
        row for row in tables["steps"]
        if row["kind"] == "idle" and not row["num_running"] and row["num_waiting"] > 1
        and row["kv_blocks_free"] < 0.5 * row["kv_blocks_total"]
    ]  # fmt: skip
    owners = {row["owner"] for row in tables["allocations"]}
    return len(idle) > 2 * OFTEN and len(owners) > 1


def tried_in_vain(tables: Tables) -> bool:
    """Somebody was told to lack more blocks than there are."""
    whole = tables.config["engine"]["num_kv_blocks"]
    return any(
        row["resource"] == "kv-block" and row["needed"] > whole
        for row in tables.decisions("deferred")
    )


SHOWN: Mapping[str, Shown] = {
    "prompts-always-first": prompts_alone,
    "full-since-the-last-chunk": slot_free_and_taken,
    "ready-not-looked-at": ready_in_vain,
    "blocked-head-holds-all": held_back_with_room,
    "passed-without-bound": passed_and_passed,
    "half-the-pool-each": holders_wait,
    "never-fits-and-waits": tried_in_vain,
}
