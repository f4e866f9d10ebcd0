"""Whether a fault of scheduling shows in a trace at all, told from the rows and not by its rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from stepscope.engine.request import EOS_TOKEN
from tests.random_configurations.count_requests import ENDS, ENTERS
from tests.random_configurations.tables import Row, Tables, grouped

Shown = Callable[[Tables], bool]
OFTEN = 16  # steps in a row; what happens less often is over before anybody sees it


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


def prompts_alone(tables: Tables) -> bool:
    """Many steps in a row of prompts alone, with somebody who had his first token."""
    begun = _begun(tables)
    streak = 0
    for row in tables["steps"]:
        waits = any(first < row["ts_ns"] < last for first, last in begun)
        streak = streak + 1 if waits and row["kind"] == "prefill" else 0
        if streak > OFTEN:
            return True
    return False


def _begun(tables: Tables) -> list[tuple[int, int]]:
    """From its first token to its end, of each request."""
    return [
        (row["ts_ns"], events[-1]["ts_ns"])
        for events in tables.events.values()
        for row in events
        if row["event"] == "first-token"
    ]


def one_prompt_takes_all(tables: Tables) -> bool:
    """Twice a chunk was nine tenths of the budget, with somebody who had his first token."""
    begun = _begun(tables)
    budget = tables.config["engine"]["max_num_batched_tokens"]
    large = [
        row for row in tables["batch_rows"]
        if row["phase"] == "prefill" and row["num_tokens"] >= 0.9 * budget
        and any(first <= row["ts_ns"] < last for first, last in begun)
        and not _decodes(tables, row["step"])
    ]  # fmt: skip
    return len(large) >= 2


def _decodes(tables: Tables, step: int) -> bool:
    return any(row["step"] == step and row["num_decode_reqs"] for row in tables["steps"])


def prompts_get_nothing(tables: Tables) -> bool:
    """More than eight steps in a row reserved more than decodes took, and prompts had nothing."""
    streak = 0
    for row in tables["steps"]:
        is_wasted = (row["reserved_tokens"] or 0) > row["num_decode_tokens"]
        # Behind a prompt that waits for a seat nothing is wasted.
        waits = row["num_waiting"] and row["num_running"] < tables.config["engine"]["max_num_seqs"]
        streak = streak + 1 if is_wasted and waits and not row["num_prefill_tokens"] else 0
        if streak > 8:
            return True
    return False


def reserve_taken(tables: Tables) -> bool:
    """Prompts took what was reserved for decodes."""
    return any(
        row["num_prefill_tokens"] + (row["reserved_tokens"] or 0) > row["token_budget"]
        for row in tables["steps"]
    )


def placeholder_read(tables: Tables) -> bool:
    """A decode read a token that nobody has sampled."""
    return any(row["buffer"] == "input_ids" and row["epoch"] == 0 for row in tables["accesses"])


def token_of_a_chunk(tables: Tables) -> bool:
    """A token came from a step in which the request's prompt was not finished."""
    open_rows = {
        (row["step"], row["request"]) for row in tables["batch_rows"]
        if row["phase"] == "prefill" and row["is_final_chunk"] is False
    }  # fmt: skip
    return any((row["source_step"], row["request"]) in open_rows for row in tables["outputs"])


def twice_in_a_batch(tables: Tables) -> bool:
    """A request has two rows in a step."""
    rows = Counter((row["rank"], row["step"], row["request"]) for row in tables["batch_rows"])
    return max(rows.values(), default=0) > 1


def victim_in_batch(tables: Tables) -> bool:
    """A request has a row in the step that preempted it."""
    rows = {(row["step"], row["request"]) for row in tables["batch_rows"]}
    return any(
        row["event"] == "preempt" and (row["step"], row["request"]) in rows
        for row in tables["lifecycle"]
    )


def drafts_mixed(tables: Tables) -> bool:
    """A batch of prompts and decodes has drafts."""
    mixed = {row["step"] for row in tables["steps"] if row["kind"] == "mixed"}
    return any(row["num_draft"] and row["step"] in mixed for row in tables["batch_rows"])


def kinds_differ(tables: Tables) -> bool:
    """In one step a rank ran prompts, and another one decodes alone."""
    for rows in grouped(tables["steps"], lambda row: row["step"]).values():
        kinds = {_kind(row) for row in rows}
        if {"prefill", "decode"} <= kinds:
            return True
    return False


def _kind(step: Row) -> str:
    if step["kind"] == "dummy":
        return "prefill" if step["executed_path"].endswith("prefill") else "decode"
    return "prefill" if step["kind"] in {"prefill", "mixed"} else str(step["kind"])


def _any_segment(is_wrong: Callable[[Row], bool]) -> Shown:
    return lambda tables: any(is_wrong(row) for row in tables["segments"])


def taken_for_prefill(tables: Tables) -> bool:
    """A mixed batch ran as a prefill."""
    return any(
        row["kind"] == "mixed" and "mixed" not in row["executed_path"] for row in tables["steps"]
    )


def logits_of_others(tables: Tables) -> bool:
    """A step computed other rows of logits than it sampled."""
    sampled = Counter(
        row["step"] for row in tables["batch_rows"]
        if row["phase"] == "decode" or row["is_final_chunk"]
    )  # fmt: skip
    return any(
        row["kind"] == "mixed" and row["logits_rows"] != sampled[row["step"]]
        for row in tables["steps"]
    )


def other_segments_view(tables: Tables) -> bool:
    """The first segment reads what was written for the second."""
    written = {
        (row["step"], row["epoch"]): row["segment"] for row in tables["accesses"]
        if row["op"] == "write" and row["stream"] == "host"
    }  # fmt: skip
    return any(
        row["op"] == "read" and row["stream"] == "compute"
        and written.get((row["step"], row["epoch"]), row["segment"]) != row["segment"]
        for row in tables["accesses"]
    )  # fmt: skip


def written_in_flight(tables: Tables) -> bool:
    """The host writes a pinned buffer, and has waited for nothing since it was copied from."""
    copied: set[str] = set()
    for row in tables["accesses"]:
        if row["op"] == "wait" and row["stream"] == "host":
            copied.clear()
        elif row["op"] == "copy" and row["buffer"].startswith("pinned"):
            copied.add(row["buffer"])
        elif row["op"] == "write" and row["stream"] == "host" and row["buffer"] in copied:
            return True
    return False


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


SHOWN: Mapping[str, Shown] = {
    "shortest-bucket": oldest_passed_over,
    "newest-first-oldest-preempted": older_for_younger,
    "bucket-preemption-with-free-blocks": preempted_with_room,
    "incompatible-requeued-on-drained-queue": round_in_circles,
    "one-victim-then-ignored": dropped_in_vain,
    "victim-popped-instead-of-admitted": wrong_one_left,
    "block-given-twice": owned_twice,
    "block-leaked": kept_behind_the_end,
    "batch-full-latched": nobody_let_in,
    "prefill-eats-the-budget": prompts_alone,
    "no-request-cap": one_prompt_takes_all,
    "reserve-for-every-seat": prompts_get_nothing,
    "reserve-not-held": reserve_taken,
    "placeholder-read-as-token": placeholder_read,
    "token-of-partial-prefill": token_of_a_chunk,
    "scheduled-twice": twice_in_a_batch,
    "victim-in-batch": victim_in_batch,
    "mtp-with-mixed": drafts_mixed,
    "peer-kind-from-queue": kinds_differ,
    "lengths-not-rebased": _any_segment(lambda row: row["first_cu_len"] != 0),
    "input-ids-not-sliced": _any_segment(lambda row: row["input_ids_len"] != row["num_tokens"]),
    "slot-mapping-missing": _any_segment(lambda row: row["slot_mapping_len"] is None),
    "mixed-taken-for-prefill": taken_for_prefill,
    "logits-per-token": logits_of_others,
    "logits-per-batch": logits_of_others,
    "decode-overwrites-shared-view": other_segments_view,
    "pinned-buffer-overwritten": written_in_flight,
    "skip-mirror-refresh": goes_back,
    "recycle-without-clearing": older_than_owner,
    "masked-row-leak": token_without_row,
    "refill-when-drained": slot_left_free,
    "token-after-eos": behind_the_end,
    "token-past-cap": past_the_cap,
    "cap-before-eos": told_to_be_cut,
}
