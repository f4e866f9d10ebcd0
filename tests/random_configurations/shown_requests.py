"""Whether a fault of queues, pools and slots shows in a trace at all, told from its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from stepscope.engine.requests.request import EOS_TOKEN
from tests.random_configurations.count_requests import ENDS, ENTERS
from tests.random_configurations.tables import Row, Tables, grouped

Shown = Callable[[Tables], bool]
OFTEN = 16  # steps in a row; what happens less often is over before anybody sees it


def decodes_left_out(tables: Tables) -> bool:
    """In two of five steps of decodes a fifth of those who ran were left out for a bucket."""
    steps = [step for step in tables["steps"] if step["kind"] == "decode"]
    about = {row["step"] for row in tables["decisions"] if row["subject_kind"] == "bucket"}
    num_left_out = sum(
        step["step"] in about and step["num_decode_reqs"] < 0.8 * step["num_running"]
        for step in steps
    )
    return bool(num_left_out > max(OFTEN, 0.4 * len(steps)))


def oldest_passed_over(tables: Tables) -> bool:
    """The bucket of the oldest that competed did not run, step after step."""
    about = (row for row in tables["decisions"] if row["subject_kind"] == "bucket")
    streaks = Counter[str]()
    for weighed in grouped(about, lambda row: row["step"]).values():
        oldest = min(weighed, key=lambda row: tables.age(row["holder"]))
        if oldest["verdict"] != "passed-over":
            streaks.clear()
            continue
        streaks[oldest["holder"]] += 1
        if streaks[oldest["holder"]] > OFTEN:
            return True
    return False


def older_for_younger(tables: Tables) -> bool:
    """Somebody was preempted for a younger one."""
    return any(
        row["event"] == "preempt" and tables.age(row["by_request"]) > tables.age(row["request"])
        for row in tables["lifecycle"]
        if row["by_request"] in tables.arrivals
    )


def preempted_with_room(tables: Tables) -> bool:
    """Somebody was preempted though what was needed was free."""
    return any(row["available"] >= row["needed"] for row in tables.decisions("preempted"))


def round_in_circles(tables: Tables) -> bool:
    """One request was put back in a step more often than there are requests."""
    put_back = Counter((row["step"], row["subject"]) for row in tables.decisions("put-back"))
    return max(put_back.values(), default=0) > max(OFTEN, len(tables.arrivals))


def dropped_in_vain(tables: Tables) -> bool:
    """Somebody was rejected who needed no more than the whole pool."""
    whole = tables.config["engine"]["num_kv_blocks"]
    return any(
        row["resource"] == "kv-block" and row["needed"] <= whole
        for row in tables.decisions("rejected")
    )


def wrong_one_left(tables: Tables) -> bool:
    """A request was let in that ran already, or had been let in and not been put out since."""
    for events in tables.events.values():
        is_in = False
        for row in events:
            if row["event"] in ENTERS and is_in:
                return True
            is_in = row["event"] in ENTERS or (is_in and row["event"] not in ENDS | {"preempt"})
    return False


def owned_twice(tables: Tables) -> bool:
    """A block was claimed that another had claimed and not released."""
    owners: dict[int, set[str]] = defaultdict(set)
    for row in tables["allocations"]:
        if row["op"] == "claim" and owners[row["id"]] - {row["owner"]}:
            return True
        (owners[row["id"]].add if row["op"] == "claim" else owners[row["id"]].discard)(row["owner"])
    return False


def kept_behind_the_end(tables: Tables) -> bool:
    """A request that had ended, before the trace did, kept a block."""
    kept = Counter[str]()
    for row in tables["allocations"]:
        kept[row["owner"]] += {"claim": 1, "share": 1, "release": -1}.get(row["op"], 0)
    last_ns = max(row["ts_ns"] + row["dur_ns"] for row in tables["steps"])
    return any(
        row["event"] in ENDS and kept[row["request"]] > 0 and row["ts_ns"] < last_ns
        for row in tables["lifecycle"]
    )


def nobody_let_in(tables: Tables) -> bool:
    """Idle steps, more than a few, with somebody in the queue and the whole pool free."""
    idle = [
        row for row in tables["steps"]
        if row["kind"] == "idle" and row["num_waiting"]
        and row["kv_blocks_free"] == row["kv_blocks_total"]
    ]  # fmt: skip
    return len(idle) > 2 * OFTEN


def goes_back(tables: Tables) -> bool:
    """A slot is read at an older version than its owner has read before."""
    newest: dict[tuple[int, int], int] = {}
    for tenancy, row in _of_slots(tables):
        if row["op"] == "read":
            if row["epoch"] < newest.get(tenancy, 0):
                return True
            newest[tenancy] = row["epoch"]
    return False


def older_than_owner(tables: Tables) -> bool:
    """A slot is read at a version from before its owner first wrote there."""
    first_write: dict[tuple[int, int], int] = {}
    for tenancy, row in _of_slots(tables):
        if row["op"] == "write":
            first_write.setdefault(tenancy, row["epoch"])
        elif row["epoch"] < first_write.get(tenancy, 0):
            return True
    return False


def _of_slots(tables: Tables) -> Iterator[tuple[tuple[int, int], Row]]:
    """Accesses of the KV on the device, each with its slot and when that had been claimed."""
    layout = tables.config["layout"]
    claims: dict[int, list[int]] = defaultdict(list)
    for row in tables["allocations"]:
        if row["op"] == "claim":
            claims[row["id"]].append(row["ts_ns"])
    for row in tables["accesses"]:
        if row["buffer"] == "device-kv":
            slot = row["first"] // (layout["slot_tokens"] * layout["token_bytes"])
            since = max((each for each in claims[slot] if each < row["ts_ns"]), default=-1)
            yield (slot, since), row


def token_without_row(tables: Tables) -> bool:
    """A request got a token in a step that it was not in."""
    rows = {(row["step"], row["request"]) for row in tables["batch_rows"]}
    return any((row["step"], row["request"]) not in rows for row in tables["outputs"])


def slot_left_free(tables: Tables) -> bool:
    """Two steps in a row had a free slot, and somebody waiting."""
    slots = tables.config["engine"]["num_slots"]
    free = [row["num_waiting"] and row["num_running"] < slots for row in tables["steps"]]
    return any(all(pair) for pair in pairwise(free))


def behind_the_end(tables: Tables) -> bool:
    """A token came after the one that ends the output."""
    ends = {row["request"]: row["position"] for row in tables["outputs"]
            if row["token"] == EOS_TOKEN}  # fmt: skip
    return any(row["position"] > ends.get(row["request"], 1 << 62) for row in tables["outputs"])


def past_the_cap(tables: Tables) -> bool:
    """A request got more tokens than it asked for."""
    tokens = Counter(row["request"] for row in tables["outputs"])
    return any(tokens[each] > row["max_tokens"] for each, row in tables.arrivals.items())


def told_to_be_cut(tables: Tables) -> bool:
    """An output ended with the token that ends it, and is told to have been cut."""
    ends = {row["request"] for row in tables["outputs"] if row["token"] == EOS_TOKEN}
    return any(
        row["event"] == "finish" and row["cause"] is None and row["request"] in ends
        for row in tables["lifecycle"]
    )


def ended_in_error(tables: Tables) -> bool:
    """Somebody who had been preempted was given up, and the cause is an error."""
    return any(
        row["event"] == "abort" and (row["cause"] or "").startswith("error")
        and any(before["event"] == "preempt" for before in tables.events[row["request"]])
        for row in tables["lifecycle"]
    )  # fmt: skip


def left_open(tables: Tables) -> bool:
    """Somebody came, and nothing is told of an end."""
    return any(events[-1]["event"] not in ENDS for events in tables.events.values())


def all_wait_for_blocks(tables: Tables) -> bool:
    """Many steps in which several run and nobody is in the batch."""
    idle = [row for row in tables["steps"] if row["kind"] == "idle" and row["num_running"] > 1]
    return len(idle) > 2 * OFTEN


def held_for_ever(tables: Tables) -> bool:
    """A request needs more than the whole pool, and was not turned away."""
    engine = tables.config["engine"]
    room = engine["num_kv_blocks"] * engine["block_size"]
    return any(
        arrived["prompt_len"] + arrived["max_tokens"] - 1 > room
        and all(row["event"] != "reject" for row in tables.events[request])
        for request, arrived in tables.arrivals.items()
    )


def finished_without_a_token(tables: Tables) -> bool:
    """A request finished, without a cause, and has no token."""
    served = {row["request"] for row in tables["outputs"]}
    return any(
        row["event"] == "finish" and row["cause"] is None and row["request"] not in served
        for row in tables["lifecycle"]
    )


SHOWN: Mapping[str, Shown] = {
    "nobody-gives-way": all_wait_for_blocks,
    "too-long-is-held": held_for_ever,
    "ignored-told-as-finished": finished_without_a_token,
    "preempted-ends-in-error": ended_in_error,
    "executor-dies": left_open,
    "completions-in-buckets": decodes_left_out,
    "shortest-bucket": oldest_passed_over,
    "newest-first-oldest-preempted": older_for_younger,
    "bucket-preemption-with-free-blocks": preempted_with_room,
    "incompatible-requeued-on-drained-queue": round_in_circles,
    "one-victim-then-ignored": dropped_in_vain,
    "victim-popped-instead-of-admitted": wrong_one_left,
    "block-given-twice": owned_twice,
    "block-leaked": kept_behind_the_end,
    "batch-full-latched": nobody_let_in,
    "skip-mirror-refresh": goes_back,
    "recycle-without-clearing": older_than_owner,
    "masked-row-leak": token_without_row,
    "refill-when-drained": slot_left_free,
    "one-slot-used": slot_left_free,
    "token-after-eos": behind_the_end,
    "token-past-cap": past_the_cap,
    "cap-before-eos": told_to_be_cut,
}
