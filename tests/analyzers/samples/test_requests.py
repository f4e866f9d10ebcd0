"""What rules of starvation say of recordings, against the events of requests one by one."""

from __future__ import annotations

from collections import defaultdict
from math import ceil
from statistics import median

import pytest

from stepscope.analyzers.rules.stv.stv001_request_starved import RequestStarved
from stepscope.analyzers.rules.stv.stv002_fcfs_inversion import FcfsInversion
from stepscope.analyzers.rules.stv.stv004_decode_stalled import DecodeStalled
from stepscope.analyzers.rules.stv.stv006_head_of_line_blocked import HeadOfLineBlocked
from stepscope.analyzers.rules.stv.stv007_schedule_livelock import ScheduleLivelock
from stepscope.analyzers.rules.stv.stv009_idle_capacity import IdleCapacity
from stepscope.analyzers.rules.stv.stv010_silent_stall import SilentStall
from tests.analyzers.samples.conftest import DECLARED, Sample
from tests.analyzers.samples.raw_trace import LEAVES, RawTrace, Row, runs_of

TRIED = frozenset(
    {
        "STV001", "STV002", "STV004", "STV006", "STV007", "STV008", "STV009", "STV010", "STV012",
        "STV014", "STV015", "TRC007",
    }
)  # fmt: skip
MS = 1_000_000


def test_stv001_finds_who_waited_so_many_times_as_long_as_in_order_of_arrival(
    of_vllm: list[Sample],
) -> None:
    """The n-th to come would have been gone at the n-th finish, or when all before it were."""
    for sample in of_vllm:
        raw, waited = sample.raw, {}
        finishes = sorted(row["ts_ns"] for row in raw.ends.values() if row["event"] == "finish")
        older_ns = 0
        for nth_ns, (request, row) in zip(finishes, raw.arrivals.items(), strict=True):
            finish_ns = max(nth_ns, older_ns)
            older_ns = max(older_ns, raw.ends[request]["ts_ns"])
            here = row["ts_ns"], raw.ends[request]["ts_ns"]
            others = sum(here[0] < at_ns <= here[1] for at_ns in finishes) - 1
            waited_ns = sum(until - since for since, until in raw.queued[request])
            if others and waited_ns > (finish_ns - here[0]) / 2:
                waited[request] = waited_ns, finish_ns - here[0], others

        told = {
            each.request: tuple(
                each.evidence[name] for name in ("waited_ns", "fair_share_ns", "others finished")
            )
            for each in sample.findings(RequestStarved(max_shares=0.5))
        }

        assert told == waited
        assert len(waited) == (9 if sample.name == "vllm_crowd" else 0)
        assert all(wait_ns < 2 * fair_ns for wait_ns, fair_ns, _ in waited.values())
        assert sample.checked.counts["STV001"] == 0


def test_stv001_finds_all_whose_deadline_came_while_they_were_not_served(
    samples: dict[str, Sample],
) -> None:
    sample = samples["fcfs-preemption-before"]
    late = {
        request
        for request, row in sample.raw.arrivals.items()
        if row["deadline_ns"] <= sample.raw.ends[request]["ts_ns"]
    }

    found = sample.findings(RequestStarved())

    assert {each.request for each in found} == late
    assert len(late) == len(sample.raw.arrivals) == 40


def test_stv002_finds_nobody_who_waited_while_a_younger_one_was_let_in(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm:
        raw, order = sample.raw, list(sample.raw.arrivals)
        let_in = [row for row in raw.events if row["event"] in LEAVES]
        passed = [
            (older, row["request"])
            for row in let_in
            for older in order[: order.index(row["request"])]
            if raw.waits_at(older, row["ts_ns"])
        ]

        assert (passed, sample.checked.counts["STV002"]) == ([], 0)
        assert len(let_in) == len(order) + sum(row["event"] == "preempt" for row in raw.events)


def test_stv002_finds_how_often_each_gave_way_to_a_younger_one(
    samples: dict[str, Sample],
) -> None:
    sample = samples["fcfs-preemption-before"]
    order, gave_way = list(sample.raw.arrivals), defaultdict[str, int](int)
    for row in sample.raw.events:
        if row["event"] == "preempt":
            is_younger = order.index(row["by_request"]) > order.index(row["request"])
            gave_way[row["request"]] += is_younger
    preempted = {
        each.request: each.evidence["times preempted for a younger"]
        for each in sample.findings(FcfsInversion())
    }

    assert {request: num for request, num in preempted.items() if num} == {
        request: num for request, num in gave_way.items() if num
    }
    assert sum(gave_way.values()) > 100


def test_stv004_finds_the_longest_gap_between_two_tokens_of_each_request(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm:
        last: dict[str, int] = {}
        gaps: list[tuple[int, str, int]] = []
        for row in sample.raw.tokens:
            if row["request"] in last:
                gaps.append((row["ts_ns"] - last[row["request"]], row["request"], row["step"]))
            last[row["request"]] = row["ts_ns"]
        usual_ns = median(gap_ns for gap_ns, _, _ in gaps if gap_ns)
        longest: dict[str, tuple[int, int]] = {}
        for gap_ns, request, step in sorted(gaps):
            if gap_ns > max(usual_ns, MS):
                longest[request] = gap_ns, step
        ended: dict[int, list[int]] = defaultdict(list)
        for gap_ns, step in longest.values():
            ended[step].append(gap_ns)

        found = sample.findings(DecodeStalled(max_ratio=1.0, max_turn_ratio=1.0, min_gap_ns=MS))

        assert {each.evidence["median_gap_ns"] for each in found} == {usual_ns}
        assert sorted((each.evidence["gap_ns"], each.count) for each in found) == sorted(
            (max(gaps_ns), len(gaps_ns)) for gaps_ns in ended.values()
        )
        assert len(longest) > 10
        assert sample.checked.counts["STV004"] == 0
        assert max(gap_ns for gap_ns, _, _ in gaps) < 1_000 * MS


def test_stv004_tells_how_long_the_one_that_stalled_was_preempted(crowd: Sample) -> None:
    found = crowd.findings(DecodeStalled(max_ratio=1.0, max_turn_ratio=1.0, min_gap_ns=MS))
    for each in found:
        since, until = each.ts_ns or 0, each.end_ns or 0
        outs = [
            (out_ns, min(back_ns, until) - max(out_ns, since))
            for out_ns, back_ns in crowd.raw.queued[each.request or ""][1:]
            if out_ns <= until and back_ns >= since
        ]

        assert each.evidence["times preempted"] == len(outs)
        assert each.evidence.get("preempted_ns", 0) == sum(length_ns for _, length_ns in outs)
    assert [each.evidence["times preempted"] == 0 for each in found].count(False) == 4


def test_stv006_adds_up_how_long_who_would_have_fitted_stood_behind_one_who_did_not(
    declared: Sample,
) -> None:
    raw, size = declared.raw, DECLARED["block_size"]
    preempted = raw.first("preempt")
    blocked: dict[str, float] = defaultdict(float)
    for request, arrival in raw.arrivals.items():
        most = arrival["prompt_len"] + (arrival["max_tokens"] if request in preempted else 0)
        for row, until in raw.told(request):
            if row["resource"] != "queue":
                continue
            for head, head_until in raw.told(row["holder"]):
                lacks_blocks = head["resource"] == "kv-block" and head["needed"] > head["available"]
                if lacks_blocks and ceil(most / size) <= head["available"]:
                    both = min(until, head_until) - max(row["ts_ns"], head["ts_ns"])
                    blocked[request] += max(0, both)
    blocked = {request: ns for request, ns in blocked.items() if ns}

    (found,) = declared.findings(HeadOfLineBlocked(max_ratio=0.0))

    assert (found.count, found.evidence["blocked_ns"]) == (len(blocked), sum(blocked.values()))
    assert found.evidence["worst_blocked_ns"] == max(blocked.values())
    assert found.evidence["worst_served_ns"] == raw.served_ns(found.request or "")
    worse = [name for name in blocked if blocked[name] > 2 * raw.served_ns(name)]
    assert (declared.checked.counts["STV006"], len(blocked)) == (len(worse), 6)


def test_stv007_finds_no_batch_that_ran_again_from_the_same_tokens_on(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm:
        raw, before, same = sample.raw, None, list[int]()
        for step in raw.steps:
            batch = {(row["request"], row["num_computed"]) for row in raw.batches[step["step"]]}
            same += [step["step"]] if batch and batch == before else []
            before = batch
        put_back = [row for row in raw.decisions if row["verdict"] == "put-back"]

        assert (same, put_back) == ([], [])
        assert sample.findings(ScheduleLivelock(max_times=0, max_steps=0)) == []
        assert len(raw.steps) > 80


def test_stv008_and_stv014_find_nobody_who_was_turned_away_or_can_never_fit(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm[:2]:
        (pool,) = {row["kv_blocks_total"] for row in sample.raw.steps}
        rejected = [row for row in sample.raw.events if row["event"] == "reject"]
        short = [row for row in sample.raw.decisions if row["resource"] == "kv-block"]
        held = [row for row in short if row["verdict"] == "deferred"]

        assert (rejected, sample.checked.counts["STV008"]) == ([], 0)
        assert sample.checked.counts["STV014"] == sum(row["needed"] > pool for row in held) == 0
        assert len(held) == {"vllm_crowd": 29, "vllm_prefixes": 2}[sample.name]


def _idle(raw: RawTrace) -> list[Row]:
    """Steps with a free running slot, somebody who waits, and no prompt or preemption in them."""
    preempted = {row["step"] for row in raw.decisions if row["verdict"] == "preempted"}
    return [
        row
        for row in raw.steps
        if row["num_waiting"]
        and row["num_running"] < DECLARED["max_num_seqs"]
        and row["num_prefill_tokens"] == 0
        and row["step"] not in preempted
    ]


@pytest.mark.parametrize("rule", [IdleCapacity, SilentStall])
def test_running_slots_stay_free_only_where_the_head_of_the_queue_lacks_blocks(
    declared: Sample, rule: type[IdleCapacity | SilentStall]
) -> None:
    raw, idle = declared.raw, _idle(declared.raw)
    lacking = {
        step["step"]
        for step in idle
        for request in raw.arrivals
        for row, until in raw.told(request)
        if row["ts_ns"] <= step["formed_ns"] < until
        and row["resource"] == "kv-block"
        and row["needed"] > step["kv_blocks_free"]
    }

    assert {row["step"] for row in idle} == lacking
    assert len(lacking) > 90
    assert declared.findings(rule(max_steps=0, free_share=0.0)) == []


@pytest.mark.parametrize("rule", [IdleCapacity, SilentStall])
def test_running_slots_that_stay_free_without_a_word_are_counted_step_by_step(
    untold: Sample, rule: type[IdleCapacity | SilentStall]
) -> None:
    idle = {
        row["step"]
        for row in _idle(untold.raw)
        if 10 * row["kv_blocks_free"] >= row["kv_blocks_total"]
        and 10 * (row["token_budget"] - row["num_decode_tokens"]) >= row["token_budget"]
    }
    runs = runs_of(untold.raw.steps, idle)

    (found,) = untold.findings(rule(max_steps=0, free_share=0.1))

    assert (found.evidence["steps"], found.count) == (len(idle), len(runs))
    assert found.evidence["longest run_steps"] == max(map(len, runs)) > 2
    longest = next(run for run in runs if run[0]["step"] == found.step)
    assert found.evidence["waiting at most"] == max(row["num_waiting"] for row in longest)


def test_stv012_and_stv015_find_that_all_were_let_in_and_ended_at_their_cap(
    of_vllm: list[Sample],
) -> None:
    for sample in of_vllm:
        raw = sample.raw
        served = {row["request"] for rows in raw.batches.values() for row in rows}
        told = sample.checked.counts["STV012"], sample.checked.counts["STV015"]

        assert {row["cause"] for row in raw.ends.values()} == {"length_capped"}
        assert (set(raw.ends) - served, told) == (set(), (0, 0))
        assert len(raw.ends) == len(raw.arrivals) >= 16


def test_trc007_finds_nothing_where_tokens_follow_one_another_and_no_batch_follows_an_end(
    of_vllm: list[Sample], sglang: Sample
) -> None:
    for sample in (*of_vllm, sglang):
        positions: defaultdict[str, list[int]] = defaultdict(list)
        for row in sample.raw.table("outputs"):
            positions[row["request"]].append(row["position"])
        for request, known in positions.items():
            assert sorted(set(known)) == list(range(min(known), max(known) + 1)), request
        formed = {row["step"]: row["formed_ns"] or row["ts_ns"] for row in sample.raw.steps}
        batches = sample.raw.table("batch_rows")
        assert {row["step"] for row in batches} <= formed.keys()
        ends = {request: row["ts_ns"] for request, row in sample.raw.ends.items()}
        after = [row for row in batches if formed[row["step"]] > ends.get(row["request"], 1 << 62)]
        assert after == []
        assert sample.checked.counts["TRC007"] == 0
