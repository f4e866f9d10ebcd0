"""What rules of KV blocks say of recordings, against their claims and releases one by one."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from pathlib import Path

import polars as pl

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb001_block_double_owned import BlockDoubleOwned
from stepscope.analyzers.rules.kvb.kvb002_block_leaked import BlockLeaked
from stepscope.analyzers.rules.kvb.kvb003_preempted_with_room import PreemptedWithRoom
from stepscope.analyzers.rules.kvb.kvb004_preemption_thrash import PreemptionThrash
from stepscope.analyzers.rules.kvb.kvb007_wrong_request_taken import WrongRequestTaken
from stepscope.analyzers.rules.kvb.kvb008_hold_and_wait import HoldAndWait
from stepscope.analyzers.rules.kvb.kvb010_reset_between_chunks import ResetBetweenChunks
from tests.analyzers.samples.conftest import EngineRun, Sample, copied
from tests.analyzers.samples.raw_trace import ENTERS, LEAVES, RawTrace, Row

TRIED = frozenset({"KVB001", "KVB002", "KVB003", "KVB004", "KVB007", "KVB008", "KVB010"})
Owned = tuple[str, int, float, bool]


def owned(raw: RawTrace) -> dict[int, list[Owned]]:
    """Who had each block from when to when, and whether it was claimed, in order of time."""
    spans: dict[int, list[Owned]] = defaultdict(list)
    since: dict[tuple[int, str], tuple[int, bool]] = {}
    for row in sorted(raw.changes, key=lambda row: (row["ts_ns"], row["op"] != "release")):
        key = row["id"], row["owner"]
        if row["op"] != "release":
            since[key] = row["ts_ns"], row["op"] == "claim"
        elif key in since:
            from_ns, is_claim = since.pop(key)
            spans[row["id"]].append((row["owner"], from_ns, row["ts_ns"], is_claim))
    for (block, owner), (from_ns, is_claim) in since.items():
        spans[block].append((owner, from_ns, inf, is_claim))
    return {block: sorted(each, key=lambda span: span[1]) for block, each in spans.items()}


def doubled(raw: RawTrace, overlap_ns: int) -> dict[tuple[str, str], int]:
    """How many blocks each owner claimed while another had had them longest: (owner, holder)."""
    pairs: dict[tuple[str, str], set[int]] = defaultdict(set)
    for block, spans in owned(raw).items():
        for owner, from_ns, to_ns, is_claim in spans:
            before = [span for span in spans if span[1] < from_ns]
            if is_claim and before:
                holder, _, holder_to_ns, _ = max(before, key=lambda span: span[2])
                if holder != owner and min(to_ns, holder_to_ns) - from_ns >= overlap_ns:
                    pairs[owner, holder].add(block)
    return {pair: len(blocks) for pair, blocks in pairs.items()}


def pairs_of(found: list[Finding]) -> dict[tuple[str, str], object]:
    return {
        (each.request or "", str(each.evidence["holder"])): each.evidence["KV blocks"]
        for each in found
    }


def leaking(sample: Sample, folder: Path, owner: str) -> Sample:
    """The recording without what an owner released."""
    is_released = (pl.col("owner") == owner) & (pl.col("op") == "release")
    return copied(sample, folder, only={"allocations": ~is_released})


def test_kvb001_finds_who_claimed_a_block_of_another_one(
    of_vllm: list[Sample], crowd: Sample, tmp_path: Path
) -> None:
    """Blocks change hands in one moment; of a request that lets go of none, others get them."""
    for sample in of_vllm:
        assert doubled(sample.raw, 1) == {}
        assert sample.checked.counts["KVB001"] == 0
        assert pairs_of(sample.findings(BlockDoubleOwned(overlap_ns=0))) == doubled(sample.raw, 0)

    leak = leaking(crowd, tmp_path, next(iter(crowd.raw.arrivals)))
    pairs = doubled(leak.raw, 1)

    assert pairs_of(leak.findings(BlockDoubleOwned())) == pairs
    assert pairs
    assert len(doubled(crowd.raw, 0)) == 6


def test_kvb002_finds_what_an_owner_that_ended_never_let_go_of(
    of_vllm: list[Sample], crowd: Sample, tmp_path: Path
) -> None:
    for sample in of_vllm:
        left = [span for spans in owned(sample.raw).values() for span in spans if span[2] == inf]

        assert (left, sample.checked.counts["KVB002"]) == ([], 0)
        assert len(owned(sample.raw)) > 10

    leak = leaking(crowd, tmp_path, next(iter(crowd.raw.arrivals)))
    left = [span for spans in owned(leak.raw).values() for span in spans if span[2] == inf]
    owner = left[0][0]
    events_ns = [row["ts_ns"] for row in leak.raw.events]
    steps_ns = [row["ts_ns"] + row["dur_ns"] for row in leak.raw.steps]

    (found,) = leak.findings(BlockLeaked())

    assert (found.request, found.evidence["requests"]) == (owner, 1)
    assert found.evidence["KV blocks"] == len(left)
    last_ns = max(events_ns + steps_ns)
    assert found.evidence["kept_ns"] == last_ns - leak.raw.ends[owner]["ts_ns"]


def test_kvb003_finds_the_preemptions_for_which_enough_was_free(
    crowd: Sample, samples: dict[str, Sample]
) -> None:
    for sample, spare in ((crowd, 0), (crowd, -1), (samples["fcfs-preemption-before"], 0)):
        preempted = [row for row in sample.raw.decisions if row["verdict"] == "preempted"]
        with_room = [row for row in preempted if row["available"] - row["needed"] >= spare]

        found = sample.findings(PreemptedWithRoom(spare_blocks=spare))

        assert sum(int(str(each.evidence["preemptions"])) for each in found) == len(with_room)
        reasons = {row["reason"].partition(":")[0] for row in with_room}
        assert {str(each.evidence["reason"]).partition(":")[0] for each in found} == reasons
        assert len(with_room) == (229 if sample is not crowd else -6 * spare)


def computed(raw: RawTrace) -> dict[str, tuple[int, int]]:
    """How many places of each request were computed again, and how many the first time."""
    reached: dict[str, set[int]] = defaultdict(set)
    counts: dict[str, tuple[int, int]] = {}
    for step in sorted(raw.batches):
        for row in raw.batches[step]:
            first = row["num_computed"]
            places = set(range(first, first + row["num_tokens"]))
            again, new = counts.get(row["request"], (0, 0))
            num_again = len(places & reached[row["request"]])
            counts[row["request"]] = again + num_again, new + len(places) - num_again
            reached[row["request"]] |= places
    return counts


def test_kvb004_finds_who_computed_more_again_than_the_first_time(
    of_vllm: list[Sample], samples: dict[str, Sample]
) -> None:
    for sample in (*of_vllm, samples["fcfs-preemption-before"]):
        counts = computed(sample.raw)
        for rule in (PreemptionThrash(), PreemptionThrash(max_share=0.0, min_tokens=1)):
            thrash = {
                request: each
                for request, each in counts.items()
                if each[0] > rule.max_share * each[1] and each[0] >= rule.min_tokens
            }
            found = sample.findings(rule)

            assert len(found) == bool(thrash)
            for each in found:
                assert each.evidence["requests"] == len(thrash)
                assert each.evidence["recomputed_tokens"] == sum(n for n, _ in thrash.values())
                assert each.evidence["new_tokens"] == sum(n for _, n in thrash.values())
                assert each.request == max(thrash, key=lambda name: thrash[name][0])
                assert each.evidence["run_tokens"] == sum(map(sum, counts.values()))
    preempted = {row["request"] for row in of_vllm[0].raw.events if row["event"] == "preempt"}
    again = {request for request, (num, _) in computed(of_vllm[0].raw).items() if num}
    assert again == preempted
    assert len(again) == 4


def test_kvb007_finds_who_was_let_in_while_it_ran(
    of_vllm: list[Sample], crowd: Sample, tmp_path: Path
) -> None:
    """Without the rows of its preemptions, a request is let in again while it runs."""

    def let_in_twice(raw: RawTrace) -> dict[str, int]:
        twice: dict[str, int] = defaultdict(int)
        waits: set[str] = set()
        for row in raw.events:
            if row["event"] in ENTERS:
                waits.add(row["request"])
            elif row["event"] in LEAVES:
                twice[row["request"]] += row["request"] not in waits
                waits.discard(row["request"])
        return {request: num for request, num in twice.items() if num}

    for sample in of_vllm:
        assert let_in_twice(sample.raw) == {}
        assert sample.checked.counts["KVB007"] == 0

    lost = copied(crowd, tmp_path, only={"lifecycle": pl.col("event") != "preempt"})
    found = lost.findings(WrongRequestTaken())

    assert {each.request: each.count for each in found} == let_in_twice(lost.raw)
    assert sum(each.count for each in found) == 6


def test_kvb008_finds_the_steps_that_computed_nothing_while_blocks_were_owned(
    crowd: Sample, engine_run: EngineRun
) -> None:
    stuck = engine_run("waiting-queue", "before")

    def idle(raw: RawTrace) -> list[Row]:
        tokens = ("num_prefill_tokens", "num_decode_tokens")
        return [row for row in raw.steps if not any(row[name] for name in tokens)]

    assert (idle(crowd.raw), crowd.findings(HoldAndWait(max_steps=0))) == ([], [])

    steps = idle(stuck.raw)
    last_ns = steps[-1]["ts_ns"]
    held: dict[str, int] = defaultdict(int)
    for spans in owned(stuck.raw).values():
        for owner, from_ns, to_ns, _ in spans:
            held[owner] += from_ns <= last_ns < to_ns
    last = {row["subject"]: row for row in stuck.raw.decisions if row["ts_ns"] <= last_ns}
    lacking = [name for name in held if last[name]["resource"] == "kv-block"]

    (found,) = stuck.findings(HoldAndWait())

    assert found.evidence["run_steps"] == len(steps) == len(stuck.raw.steps)
    assert (found.evidence["holders"], found.evidence["held_blocks"]) == (2, sum(held.values()))
    assert (found.evidence["holders that lack more"], found.request) == (1, *lacking)
    assert found.evidence["needed_blocks"] == last[lacking[0]]["needed"]


def test_kvb010_finds_who_went_back_and_was_not_preempted(
    of_vllm: list[Sample], crowd: Sample, tmp_path: Path
) -> None:
    """Without the rows of its preemptions, whoever computes again was reset."""
    for sample in of_vllm:
        assert sample.checked.counts["KVB010"] == 0
    lost = copied(crowd, tmp_path, only={"lifecycle": pl.col("event") != "preempt"})
    at: dict[str, int] = {}
    back: dict[str, int] = defaultdict(int)
    for step in sorted(lost.raw.batches):
        for row in lost.raw.batches[step]:
            gone = at.get(row["request"], 0) - row["num_computed"]
            back[row["request"]] = max(back[row["request"]], gone)
            at[row["request"]] = row["num_computed"] + row["num_tokens"]
    reset = {request for request, gone in back.items() if gone >= 32}

    (found,) = lost.findings(ResetBetweenChunks())

    assert found.evidence["requests"] == len(reset) > 1
    again = computed(lost.raw)
    assert found.evidence["recomputed_tokens"] == sum(again[request][0] for request in reset)
    assert lost.findings(PreemptionThrash(max_share=0.0, min_tokens=1)) == []
