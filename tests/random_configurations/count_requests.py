"""What the rules of requests and of their KV say, counted again from their tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from stepscope.analyzers.findings.finding import Finding
from tests.random_configurations.tables import Row, Tables, grouped

ENDS = {"finish", "abort", "reject"}
ENTERS = {"admit", "resume"}
FEW_TOKENS = 32  # by the page of KVB004
TURNS = 100  # times the usual gap that may pass while another bucket runs, by the page of STV004


def starved(tables: Tables, found: Finding) -> bool:
    """STV001: late; or, the n-th to come, twice as long in the queue as until the n-th finish."""
    arrived, events = tables.arrivals[found.request or ""], tables.events[found.request or ""]
    finish_ns = next((row["ts_ns"] for row in events if row["event"] == "finish"), None)
    deadline_ns = arrived["deadline_ns"]
    if deadline_ns is not None:
        ended_ns = _end_ns(tables) if finish_ns is None else finish_ns
        return bool(ended_ns >= deadline_ns + (finish_ns is not None))
    finishes = sorted(row["ts_ns"] for row in tables["lifecycle"] if row["event"] == "finish")
    place = sum(tables.age(each) < tables.age(found.request or "") for each in tables.arrivals)
    waited_ns = sum(until - since for since, until in _waits(tables, found.request or ""))
    return bool(waited_ns > 2 * (finishes[place] - arrived["ts_ns"]))


def gave_way(tables: Tables, found: Finding) -> bool:
    """STV002: preempted so often for somebody younger, and otherwise passed by such a one."""
    age = tables.age(found.request or "")
    for_younger = sum(
        row["event"] == "preempt" and tables.age(row["by_request"] or "") > age
        for row in tables.events[found.request or ""]
        if row["by_request"]
    )
    took = {(row["ts_ns"], row["by_request"]) for row in tables.events[found.request or ""]}
    passed_by = [
        row for row in tables["lifecycle"]
        if row["event"] in ENTERS and tables.age(row["request"]) > age
        # Who took its place came in at the moment in which it was put out; others passed it then.
        and (row["ts_ns"], row["request"]) not in took
        and any(since <= row["ts_ns"] <= until
                for since, until in _waits(tables, found.request or ""))
    ]  # fmt: skip
    is_passed = found.count == for_younger or bool(passed_by)
    return for_younger == found.evidence["times preempted for a younger"] and is_passed


def bucket_passed_over(tables: Tables, found: Finding) -> bool:
    """STV003: steps in a row in which the bucket of the oldest that competed did not run."""
    about = (row for row in tables["decisions"] if row["subject_kind"] == "bucket")
    longest = streak = 0
    for weighed in grouped(about, lambda row: row["step"]).values():
        oldest = min(weighed, key=lambda row: tables.age(row["holder"]))
        is_missed = oldest["holder"] == found.request and oldest["verdict"] == "passed-over"
        streak = streak + 1 if is_missed else 0
        longest = max(longest, streak)
    return longest == found.evidence["longest streak"]


def left_out_for_a_bucket(tables: Tables, found: Finding) -> bool:
    """STV018: so many steps of decodes with two buckets in which so many who could decode did not.

    The same for every rank; none of these steps has decodes of two lengths.
    """
    rows = grouped(tables["batch_rows"], lambda row: row["step"])
    about = {row["step"] for row in tables["decisions"] if row["subject_kind"] == "bucket"}
    lost = [
        step["num_running"] - len(rows[step["step"]])
        for step in tables["steps"]
        if step["kind"] == "decode" and step["step"] in about
    ]
    is_jagged = any(
        len({row["num_computed"] for row in of_step if row["phase"] == "decode"}) > 1
        for of_step in rows.values()
    )
    told = sum(each > 0 for each in lost), sum(lost), is_jagged
    return told == (found.count, found.evidence["turns lost"], False)


def stalled(tables: Tables, found: Finding) -> bool:
    """STV004: so long between two tokens of the request; a longer gap was another bucket's turn."""
    times = sorted(
        row["ts_ns"] for row in tables["outputs"]
        if row["request"] == found.request and not row["is_placeholder"]
    )  # fmt: skip
    gaps = [later - sooner for sooner, later in pairwise(times)]
    gap_ns, usual_ns = int(found.evidence["gap_ns"] or 0), found.evidence["median_gap_ns"]
    longer = [each for each in gaps if each > gap_ns]
    were_turns = all(each <= TURNS * float(usual_ns or 0) for each in longer)
    return gap_ns in gaps and gap_ns > 1_000_000_000 and were_turns


def went_round(tables: Tables, found: Finding) -> bool:
    """STV007: put back so often in one step."""
    put_back = (row for row in tables.decisions("put-back") if row["step"] == found.step)
    told = re.search(r"considered ([\d,]+) times", found.message)
    most = max(Counter(row["subject"] for row in put_back).values(), default=0)
    return told is not None and most == int(told[1].replace(",", ""))


def rejected_in_vain(tables: Tables, found: Finding) -> bool:
    """STV008: so many were dropped who needed no more than all there is."""
    engine = tables.config["engine"]
    whole = {"kv-block": "num_kv_blocks", "token-budget": "max_num_batched_tokens"}
    fitting = {
        row["subject"] for row in tables.decisions("rejected")
        if row["resource"] in whole and row["needed"] <= engine[whole[row["resource"]]]
    }  # fmt: skip
    return len(fitting) == found.count


def slots_idle(tables: Tables, found: Finding) -> bool:
    """STV009: in each of these steps a running slot and the KV that the head lacked were free."""
    first, last = _between(r"\((\d+) to (\d+),", r"\(step (\d+),", found.message)
    max_num_seqs = tables.config["engine"]["num_slots"] or tables.config["engine"]["max_num_seqs"]
    steps = [row for row in tables["steps"] if first <= row["step"] <= last]
    return bool(steps) and all(
        row["num_running"] < max_num_seqs and row["num_waiting"] and _head_fits(tables, row)
        for row in steps
    )


def waited_with_room(tables: Tables, found: Finding) -> bool:
    """STV006: the request waited for longer than it ran, with a running slot and KV free.

    Behind the only slot there is, it waited for half as long while another one ran.
    """
    request = found.request or ""
    engine = tables.config["engine"]
    max_num_seqs = engine["num_slots"] or engine["max_num_seqs"]
    is_only_slot = "only slot" in found.message and max_num_seqs == 1
    waits = _waits(tables, request)
    # A wait that begins in the middle of a step lasts for the rest of it.
    with_room_ns = sum(
        max(0, min(until, row["ts_ns"] + (row["dur_ns"] or 0)) - max(since, row["ts_ns"]))
        for row in tables["steps"]
        if row["rank"] == found.rank and row["num_running"] < max_num_seqs + is_only_slot
        for since, until in waits
    )
    served = {row["step"] for row in tables["batch_rows"] if row["request"] == request}
    served_ns = sum(
        row["dur_ns"] or 0 for row in tables["steps"]
        if row["rank"] == found.rank and row["step"] in served
    )  # fmt: skip
    if is_only_slot:
        return bool(
            with_room_ns > 0.5 * served_ns == 0.5 * int(found.evidence["worst_served_ns"] or 0)
        )
    return bool(with_room_ns > served_ns)


def no_decode_ran(tables: Tables, found: Finding) -> bool:
    """STV011: so many steps in a row ran prefills alone, with somebody there who could decode."""
    began = [(row["ts_ns"], row["request"]) for row in tables["lifecycle"]
             if row["event"] == "first-token"]  # fmt: skip
    # What is computed again in a step cannot decode in it.
    prompts = {(row["step"], row["request"]) for row in tables["batch_rows"]
               if row["phase"] == "prefill"}  # fmt: skip
    longest = streak = 0
    for row in sorted(tables["steps"], key=lambda row: row["step"]):
        decoding = sum(
            since <= row["ts_ns"]
            and (row["step"], request) not in prompts
            and not _is_out(tables, request, row["ts_ns"])
            for since, request in began
        )
        is_starved = row["num_prefill_reqs"] and not row["num_decode_reqs"] and decoding
        streak = streak + 1 if is_starved else 0
        longest = max(longest, streak)
    return longest == found.evidence["longest run_steps"]


def preempted_with_room(tables: Tables, found: Finding) -> bool:
    """KVB003: so many were preempted with as many blocks free as were needed."""
    roomy = [row for row in tables.decisions("preempted") if row["available"] >= row["needed"]]
    return len(roomy) >= found.count > 0


def computed_again(tables: Tables, found: Finding) -> bool:
    """KVB004: so many computed more tokens again than anew, and not only a few."""
    again, anew = recomputed(tables)
    thrashing = [each for each in anew if again[each] > anew[each] and again[each] >= FEW_TOKENS]
    told = (found.evidence["recomputed_tokens"], found.evidence["new_tokens"])
    sums = (sum(again[each] for each in thrashing), sum(anew[each] for each in thrashing))
    return len(thrashing) == found.count and sums == told


def recomputed(tables: Tables) -> tuple[Counter[str], Counter[str]]:
    """How many tokens each request computed again, and how many anew."""
    again, anew = Counter[str](), Counter[str]()
    reached: dict[str, int] = {}
    for row in sorted(tables["batch_rows"], key=lambda row: (row["step"], row["row"])):
        first, request = row["num_computed"], row["request"]
        num_again = max(0, min(first + row["num_tokens"], reached.get(request, 0)) - first)
        again[request] += num_again
        anew[request] += row["num_tokens"] - num_again
        # Of a draft it is not known whether it was accepted, where the request was preempted next.
        refused = (row["num_draft"] or 0) - (row["num_accepted"] or 0)
        certain = first + row["num_tokens"] - refused
        reached[request] = max(reached.get(request, 0), certain)
    return again, anew


def recomputes_unlabelled(tables: Tables, found: Finding) -> bool:
    """TRC005: more tokens than rows in decodes, with nobody who drafts."""
    scheduler = tables.config["scheduler"]
    drafts = scheduler.get("verify_width", 1) > 1 or scheduler.get("mtp_k", 0)
    return not drafts and any(
        (row["num_decode_tokens"] or 0) > (row["num_decode_reqs"] or 0)
        for row in tables["steps"] if row["rank"] == found.rank
    )  # fmt: skip


def _waits(tables: Tables, request: str) -> list[tuple[int, int]]:
    """From when to when the request was in the queue."""
    waits, since = [], None
    for row in tables.events[request]:
        if row["event"] in {"arrive", "preempt"}:
            since = row["ts_ns"]
        elif since is not None and row["event"] in ENTERS | ENDS:
            waits.append((since, row["ts_ns"]))
            since = None
    return [*waits, (since, _end_ns(tables))] if since is not None else waits


def _end_ns(tables: Tables) -> int:
    """When the last step ended."""
    ends: list[int] = [row["ts_ns"] + (row["dur_ns"] or 0) for row in tables["steps"]]
    return max(ends)


def _is_out(tables: Tables, request: str, ts_ns: int) -> bool:
    """Whether a request that has begun is in the queue again, or gone."""
    past = [row["event"] for row in tables.events[request] if row["ts_ns"] <= ts_ns]
    return _last(past) in ENDS | {"preempt"}


def _last(events: list[str]) -> str | None:
    moves = ENDS | ENTERS | {"preempt"}
    return next((each for each in reversed(events) if each in moves), None)


def _head_fits(tables: Tables, step: Row) -> bool:
    """Whether the KV is free that the one before all others in the queue needs."""
    size = tables.config["engine"]["block_size"]
    waiting = list(_waiting(tables, step["ts_ns"]))
    if not waiting or step["kv_blocks_free"] is None:
        return bool(waiting)
    head = min(waiting, key=tables.age)
    generated = max((row["num_generated"] or 0 for row in tables.events[head]
                     if row["ts_ns"] <= step["ts_ns"]), default=0)  # fmt: skip
    needed = -(-(tables.arrivals[head]["prompt_len"] + generated) // size)
    return bool(needed <= step["kv_blocks_free"])


def _waiting(tables: Tables, ts_ns: int) -> Iterator[str]:
    for request in tables.arrivals:
        if any(since <= ts_ns < until for since, until in _waits(tables, request)):
            yield request


def _between(several: str, one: str, message: str) -> tuple[int, int]:
    if match := re.search(several, message):
        return int(match[1]), int(match[2])
    match = re.search(one, message)
    assert match, message
    return int(match[1]), int(match[1])


def ended_in_error(tables: Tables, found: Finding) -> bool:
    """STV012: so many requests were given up for that cause."""
    cause = str(found.evidence["cause"])
    given_up = [row for row in tables["lifecycle"] if row["event"] == "abort"]
    return bool(found.count == sum(row["cause"] == cause for row in given_up))


COUNTS: Mapping[str, Callable[[Tables, Finding], bool]] = {
    "STV001": starved,
    "STV002": gave_way,
    "STV003": bucket_passed_over,
    "STV018": left_out_for_a_bucket,
    "STV004": stalled,
    "STV006": waited_with_room,
    "STV007": went_round,
    "STV008": rejected_in_vain,
    "STV009": slots_idle,
    "STV011": no_decode_ran,
    "STV012": ended_in_error,
    "KVB003": preempted_with_room,
    "KVB004": computed_again,
    "TRC005": recomputes_unlabelled,
}
