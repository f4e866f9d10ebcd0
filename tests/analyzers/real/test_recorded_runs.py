"""What the rules say of recorded runs of a real vLLM, held against the scheduler's own state.

Each count here is made in plain Python of the raw rows and of what the scheduler held, and of none
of the frames that the rules work with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import ceil

import pytest

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.rules.stv.stv004_decode_stalled import DecodeStalled
from tests.recorded import RUNS, RecordedRun, Row
from tests.tiers import sampled, slow

of_every_run = pytest.mark.parametrize("name", sampled(RUNS, quick=("gen_mix",)))


@pytest.fixture(scope="module")
def checked(recorded: Callable[[str], RecordedRun]) -> Callable[[str], CheckResult]:
    seen: dict[str, CheckResult] = {}

    def of(name: str) -> CheckResult:
        if name not in seen:
            seen[name] = check(recorded(name).trace)
        return seen[name]

    return of


# -- what is true, and is said -------------------------------------------------------------------


def thrashes(found: Finding, run: RecordedRun) -> None:
    """KVB004: of each request, the places in its sequence that were computed more than once."""
    computed: dict[str, set[int]] = defaultdict(set)
    again: dict[str, int] = defaultdict(int)
    new: dict[str, int] = defaultdict(int)
    for row in sorted(run.rows["batch_rows"], key=lambda row: row["step"]):
        certain = row["num_tokens"] - (row["num_draft"] or 0)
        for place in range(row["num_computed"], row["num_computed"] + row["num_tokens"]):
            is_again = place in computed[row["request"]]
            again[row["request"]] += is_again
            new[row["request"]] += not is_again
        computed[row["request"]].update(range(row["num_computed"] + certain))
    worse = {name for name in again if again[name] > new[name]}

    assert worse == {found.request}
    assert found.evidence["recomputed_tokens"] == again[found.request or ""]
    assert found.evidence["new_tokens"] == new[found.request or ""]
    assert _num_preempted(run)[found.request or ""] > 0


def ended_in_error(found: Finding, run: RecordedRun) -> None:
    """STV012: vLLM's own metrics say of each request why it ended."""
    reasons = [request["reason"] for request in run.metrics["requests"]]

    assert found.count == reasons.count("error")
    assert found.evidence["requests that ended"] == len(reasons)


def stood_behind_a_head(found: Finding, run: RecordedRun) -> None:
    """STV006: how long what was free was too little for the first in the queue, and not for it."""
    blocked = _blocked_ns(run)
    served = {name: _in_batches_ns(name, run) for name in blocked}
    worst = found.request or ""

    assert found.count == sum(blocked[name] > 2 * served[name] for name in blocked)
    assert found.evidence["worst_blocked_ns"] == pytest.approx(blocked[worst], rel=0.02)
    assert found.evidence["worst_served_ns"] == served[worst]


TRUE: dict[str, Callable[[Finding, RecordedRun], None]] = {
    "KVB004": thrashes,
    "STV012": ended_in_error,
    "STV006": stood_behind_a_head,
}


@slow
@of_every_run
def test_whatever_is_found_at_error_or_warning_is_true_by_another_count(
    name: str, recorded: Callable[[str], RecordedRun], checked: Callable[[str], CheckResult]
) -> None:
    loud = [each for each in checked(name).findings if each.severity is not Severity.INFO]

    for found in loud:
        TRUE[found.code](found, recorded(name))
    assert {each.code for each in loud} == {
        "gen_mix": {"KVB004", "STV006", "STV012"},
        "serve_prefix": {"KVB004", "STV006"},
    }[name]


@of_every_run
def test_a_stall_tells_how_long_the_scheduler_had_the_request_waiting(
    name: str, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(name)

    stalls = DecodeStalled(max_ratio=1.0, min_gap_ns=20_000_000).check(run.trace)

    listed = [each for each in stalls if each.request]
    for found in listed:
        waited_ns = _waited_ns(found.request or "", (found.ts_ns or 0, found.end_ns or 0), run)
        assert found.evidence.get("preempted_ns", 0) == pytest.approx(waited_ns, abs=1_000_000)
        assert bool(found.evidence["times preempted"]) == (waited_ns > 0)
    assert any(found.evidence["times preempted"] for found in listed)


def _waited_ns(request: str, during: tuple[int, int], run: RecordedRun) -> int:
    """How long a request was among those that wait, in a stretch of time."""
    began, ended = during
    return sum(
        max(0, min(after["t"], ended) - max(now["t"], began))
        for now, after in zip(run.truth, run.truth[1:], strict=False)
        if request in now["waiting"]
    )


def _num_preempted(run: RecordedRun) -> dict[str, int]:
    """How often the scheduler took each request from those that ran back to those that wait."""
    times: dict[str, int] = defaultdict(int)
    for before, after in zip(run.truth, run.truth[1:], strict=False):
        for request in set(before["running"]) & set(after["waiting"]):
            times[request] += 1
    return times


def _blocked_ns(run: RecordedRun) -> dict[str, int]:
    """How long each request that waited would have fitted, and the first in the queue did not."""
    needs, lacks = _needs(run), _lacks(run)
    blocked: dict[str, int] = defaultdict(int)
    for now, after in zip(run.truth, run.truth[1:], strict=False):
        head = now["waiting"][0] if now["waiting"] else None
        if head is None or (lacks(head, now["step"]) or 0) <= now["free"]:
            continue
        for request in now["waiting"][1:]:
            if needs[request] <= now["free"]:
                blocked[request] += after["t"] - now["t"]
    return blocked


def _needs(run: RecordedRun) -> dict[str, int]:
    """KV blocks for a request's prompt, and for all that it may generate if it comes back."""
    size = run.trace.manifest.config["engine"]["block_size"]
    came_back = _num_preempted(run)
    return {
        row["request"]: ceil(
            (row["prompt_len"] + (row["max_tokens"] if came_back[row["request"]] else 0)) / size
        )
        for row in run.rows["lifecycle"]
        if row["event"] == "arrive"
    }


def _lacks(run: RecordedRun) -> Callable[[str, int], int | None]:
    """How many KV blocks were told to be lacking last of a request, up to a step."""
    told: dict[str, list[Row]] = defaultdict(list)
    for row in run.rows["decisions"]:
        if row["verdict"] == "deferred":
            told[row["subject"]].append(row)

    def lacking(request: str, step: int) -> int | None:
        before = [row for row in told[request] if row["step"] <= step]
        return before[-1]["needed"] if before and before[-1]["resource"] == "kv-block" else None

    return lacking


def _in_batches_ns(request: str, run: RecordedRun) -> int:
    """The time in which a step ran that the request was in, once where two did."""
    steps = {row["step"]: row for row in run.rows["steps"]}
    mine = {row["step"] for row in run.rows["batch_rows"] if row["request"] == request}
    spans = sorted((steps[n]["ts_ns"], steps[n]["ts_ns"] + steps[n]["dur_ns"]) for n in mine)
    total, reached = 0, 0
    for began, ended in spans:
        total += max(0, ended - max(began, reached))
        reached = max(reached, ended)
    return total


# -- what is not true, and is not said -----------------------------------------------------------


@of_every_run
def test_no_block_has_an_owner_that_the_scheduler_does_not_know_of(
    name: str, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(name)
    changes = sorted(run.rows["allocations"], key=lambda row: row["ts_ns"])
    owned: dict[str, set[int]] = defaultdict(set)
    place = 0
    for now in run.truth:
        while place < len(changes) and changes[place]["ts_ns"] <= now["t"]:
            row = changes[place]
            change = (
                owned[row["owner"]].discard if row["op"] == "release" else owned[row["owner"]].add
            )
            change(row["id"])
            place += 1
        held = {owner: ids for owner, ids in owned.items() if ids}
        assert held == {owner: set(blocks[0]) for owner, blocks in now["blocks"].items()}


@of_every_run
def test_a_block_of_several_owners_was_claimed_by_one_and_shared_by_the_rest(
    name: str, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(name)
    how = {
        (row["owner"], row["id"], row["step"]): row["op"]
        for row in run.rows["allocations"]
        if row["op"] != "release"
    }
    before: dict[int, set[str]] = {}
    num_shared = 0
    for now in run.truth:
        owners: dict[int, set[str]] = defaultdict(set)
        for owner, blocks in now["blocks"].items():
            for block in blocks[0]:
                owners[block].add(owner)
        for block, mine in owners.items():
            new = mine - before.get(block, set())
            claims = [owner for owner in new if how[owner, block, now["step"]] == "claim"]
            still = mine & before.get(block, set())
            assert len(claims) + bool(still) <= 1
            num_shared += len(mine) > 1
        before = dict(owners)

    assert num_shared > 0


@of_every_run
def test_running_slots_stay_free_only_where_the_head_of_the_queue_lacks_blocks(
    name: str, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(name)
    engine = run.trace.manifest.config["engine"]
    lacks, preempted = _lacks(run), _steps_of(run, "preempt")
    prompts = {row["step"] for row in run.rows["batch_rows"] if row["phase"] == "prefill"}
    idle = [
        now
        for now in run.truth
        if now["waiting"]
        and len(now["running"]) < engine["max_num_seqs"]
        and now["step"] not in prompts
        and now["free"] >= 0.25 * engine["num_blocks"]
    ]
    unexplained = [
        now["step"]
        for now in idle
        if now["step"] not in preempted
        and (lacks(now["waiting"][0], now["step"]) or 0) <= now["free"]
    ]

    assert len(idle) > 5
    assert unexplained == []


@of_every_run
def test_every_request_ended_before_the_recording_was_closed(
    name: str, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(name)
    ended = _requests_of(run, "finish") | _requests_of(run, "abort")

    assert ended == _requests_of(run, "arrive")


def _steps_of(run: RecordedRun, event: str) -> set[int]:
    return {row["step"] for row in run.rows["lifecycle"] if row["event"] == event}


def _requests_of(run: RecordedRun, event: str) -> set[str]:
    return {row["request"] for row in run.rows["lifecycle"] if row["event"] == event}
