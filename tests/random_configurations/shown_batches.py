"""Whether a fault of batches shows in a trace at all, told from its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from tests.random_configurations.shown_requests import OFTEN, Shown
from tests.random_configurations.tables import Row, Tables, grouped


def prompts_alone(tables: Tables) -> bool:
    """Many steps in a row of prompts alone, beside somebody who runs and has his first token."""
    streak = 0
    for row in tables["steps"]:
        waits = any(_could_decode(tables, each, row) for each in tables.events)
        streak = streak + 1 if waits and row["kind"] == "prefill" else 0
        if streak > OFTEN:
            return True
    return False


def _could_decode(tables: Tables, request: str, step: Row) -> bool:
    """Whether he had his first token, was not thrown out since, and is not in the step's batch."""
    before = [row["event"] for row in tables.events[request] if row["ts_ns"] <= step["ts_ns"]]
    runs = "first-token" in before and before[-1] in {"first-token", "resume"}
    return runs and step["step"] not in tables.steps_of.get(request, ())


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


def reserve_in_vain(tables: Tables) -> bool:
    """In more than eight steps the reserve was twice what decodes took, and prompts were bound.

    They were where they had all that the reserve leaves, or nothing though any waited for it.
    """
    num_wasted, num_bound = 0, 0
    for row in tables["steps"]:
        reserved, prompts = row["reserved_tokens"] or 0, row["num_prefill_tokens"]
        # Behind a prompt that waits for a running slot nothing is wasted.
        waits = row["num_waiting"] and row["num_running"] < tables.config["engine"]["max_num_seqs"]
        is_bound = prompts >= row["token_budget"] - reserved and (prompts or waits)
        num_bound += bool(reserved and is_bound)
        num_wasted += bool(reserved and is_bound and reserved >= 2 * row["num_decode_tokens"])
    unused = 0.02 * tables.config["engine"]["max_num_batched_tokens"]
    return num_wasted > max(8, 0.6 * num_bound) and _mean_unused(tables) >= unused


def _mean_unused(tables: Tables) -> float:
    rows = [row for row in tables["steps"] if row["reserved_tokens"]]
    unused: int = sum(row["reserved_tokens"] - row["num_decode_tokens"] for row in rows)
    return unused / len(rows)


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


def halved_though_mixed(tables: Tables) -> bool:
    """A mixed batch ran as two halves."""
    return any(
        row["kind"] == "mixed" and row["executed_path"].endswith("tbo") for row in tables["steps"]
    )


def kinds_differ(tables: Tables) -> bool:
    """In one step a rank ran prefills, and another one decodes alone."""
    for rows in grouped(tables["steps"], lambda row: row["step"]).values():
        kinds = {_kind(row) for row in rows}
        if {"prefill", "decode"} <= kinds:
            return True
    return False


def _kind(step: Row) -> str:
    if step["kind"] == "dummy":
        return "prefill" if step["executed_path"].endswith("prefill") else "decode"
    return "prefill" if step["kind"] in {"prefill", "mixed"} else str(step["kind"])


def dealt_unevenly(tables: Tables) -> bool:
    """For a quarter of the run a rank had twice as many requests as another, and eight more."""
    lasted_ns, num_steps = 0, 0
    whole_ns = max(row["ts_ns"] for row in tables["steps"])
    for rows in grouped(tables["steps"], lambda row: row["step"]).values():
        loads = [row["num_running"] + row["num_waiting"] for row in rows]
        is_uneven = max(loads) >= 2 * min(loads) and max(loads) - min(loads) >= 8
        lasted_ns = lasted_ns + rows[0]["dur_ns"] if is_uneven else 0
        num_steps = num_steps + 1 if is_uneven else 0
        if lasted_ns > 0.3 * whole_ns and num_steps > OFTEN:
            return True
    return False


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


SHOWN: Mapping[str, Shown] = {
    "prefill-eats-the-budget": prompts_alone,
    "no-request-cap": one_prompt_takes_all,
    "reserve-for-max-num-seqs": reserve_in_vain,
    "reserve-not-held": reserve_taken,
    "placeholder-read-as-token": placeholder_read,
    "token-of-partial-prefill": token_of_a_chunk,
    "scheduled-twice": twice_in_a_batch,
    "victim-in-batch": victim_in_batch,
    "mtp-with-mixed": drafts_mixed,
    "tbo-with-mixed": halved_though_mixed,
    "peer-kind-from-queue": kinds_differ,
    "dealt-to-one-rank": dealt_unevenly,
    "lengths-not-rebased": _any_segment(lambda row: row["first_cu_len"] != 0),
    "input-ids-not-sliced": _any_segment(lambda row: row["input_ids_len"] != row["num_tokens"]),
    "slot-mapping-missing": _any_segment(lambda row: row["slot_mapping_len"] is None),
    "lengths-missing": _any_segment(lambda row: row["last_cu_len"] is None),
    "lengths-stale": other_segments_view,
    "mixed-taken-for-prefill": taken_for_prefill,
    "logits-per-token": logits_of_others,
    "logits-per-batch": logits_of_others,
    "decode-overwrites-shared-view": other_segments_view,
    "plans-not-cloned": other_segments_view,
    "decode-region-stale": other_segments_view,
    "pinned-buffer-overwritten": written_in_flight,
}
