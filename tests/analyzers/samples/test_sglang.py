"""What rules say of a run of SGLang, against its rows and against what SGLang logged of it.

The log is of the same run, and nothing of ours wrote it: what its lines count is what the recorder
has to have recorded.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import median

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.rules.bat.bat003_budget_exceeded import BudgetExceeded
from stepscope.analyzers.rules.kvb.kvb001_block_double_owned import BlockDoubleOwned
from stepscope.analyzers.rules.kvb.kvb003_preempted_with_room import PreemptedWithRoom
from stepscope.analyzers.rules.kvb.kvb004_preemption_thrash import PreemptionThrash
from stepscope.analyzers.rules.stv.stv001_request_starved import RequestStarved
from stepscope.analyzers.rules.stv.stv002_fcfs_inversion import FcfsInversion
from stepscope.analyzers.rules.stv.stv004_decode_stalled import DecodeStalled
from stepscope.analyzers.rules.stv.stv011_decode_starved import DecodeStarved
from stepscope.analyzers.rules.stv.stv026_request_stuck import RequestStuck
from tests.analyzers.samples.conftest import Sample, copied
from tests.analyzers.samples.raw_trace import LEAVES, RawTrace, Row, runs_of
from tests.analyzers.samples.test_batches import left_out, num_of
from tests.analyzers.samples.test_blocks import computed, doubled, owned, pairs_of

TRIED = frozenset(
    {
        "STV001", "STV002", "STV004", "STV011", "STV012", "STV015", "STV026", "BAT003", "BAT004",
        "BAT005", "BAT013", "KVB001", "KVB002", "KVB003", "KVB004", "TRC001", "TRC003",
        "TRC005", "TRC006",
    }
)  # fmt: skip
PAGE, POOL = 4, 160
"""Tokens of a page and of the pool, as `make_sglang.py` sets them."""
EVERY = 4
"""How many decode steps have one line."""
PREFILL = re.compile(
    r"Prefill batch, #new-seq: (\d+), #new-token: (\d+), #cached-token: (\d+), "
    r"token usage: [\d.]+, #running-req: (\d+), #queue-req: (\d+)"
)
DECODE = re.compile(r"Decode batch, #running-req: (\d+), #token: (\d+), .*#queue-req: (\d+)")
RETRACTED = re.compile(r"#retracted_reqs: (\d+), .*#new_token_ratio: ([\d.]+) -> ([\d.]+)")


@pytest.fixture(scope="module")
def log(sample_traces: Path) -> str:
    return (sample_traces / "sglang_scheduler.log").read_text(encoding="utf-8")


def of_kind(raw: RawTrace, kind: str) -> list[Row]:
    return [row for row in raw.steps if row["kind"] == kind]


def held(step: Row) -> int:
    return int(step["kv_blocks_total"] - step["kv_blocks_free"])


# -- against the log -------------------------------------------------------------------------


def test_each_prefill_has_the_prompts_tokens_and_cached_tokens_that_sglang_logged(
    sglang: Sample, log: str
) -> None:
    """Its line counts who runs without those that it begins with or goes on with."""
    raw = sglang.raw
    logged = [tuple(map(int, line)) for line in PREFILL.findall(log)]
    steps = of_kind(raw, "prefill")

    told = [
        (
            len(raw.batches[row["step"]]),
            sum(each["num_tokens"] for each in raw.batches[row["step"]]),
            sum(each["num_cached"] or 0 for each in raw.batches[row["step"]]),
            row["num_waiting"],
        )
        for row in steps
    ]

    assert told == [(seqs, tokens, cached, queue) for seqs, tokens, cached, _, queue in logged]
    assert told == [
        (row["num_prefill_reqs"], row["num_prefill_tokens"], cached, row["num_waiting"])
        for row, (_, _, cached, _) in zip(steps, told, strict=True)
    ]
    assert sum(cached for _, _, cached, _ in told) > 100
    chunks = [row for row in raw.table("batch_rows") if row["is_final_chunk"] is False]
    assert len(chunks) > 10


def test_every_fourth_decode_has_the_requests_queue_and_tokens_that_sglang_logged(
    sglang: Sample, log: str
) -> None:
    """Its line is written when the step has ended, so that who ends with it holds nothing more."""
    raw = sglang.raw
    logged = [tuple(map(int, line)) for line in DECODE.findall(log)]
    steps = of_kind(raw, "decode")[EVERY - 1 :: EVERY]
    ended = {row["step"] for row in raw.ends.values()} & {row["step"] for row in steps}

    assert [(row["num_decode_reqs"], row["num_waiting"]) for row in steps] == [
        (running, queue) for running, _, queue in logged
    ]
    tokens = {
        row["step"]: (PAGE * held(row), held_at)
        for row, (_, held_at, _) in zip(steps, logged, strict=True)
    }
    assert {step for step, (own, said) in tokens.items() if own != said} <= ended
    assert all(own > said for step, (own, said) in tokens.items() if own != said)
    assert len(steps) - len(ended) == 30
    assert max(own for own, _ in tokens.values()) == POOL


def test_each_retraction_that_sglang_logged_preempts_as_many_and_sets_its_ratio(
    sglang: Sample, log: str
) -> None:
    raw = sglang.raw
    logged = RETRACTED.findall(log)
    preempted = Counter(row["step"] for row in raw.events if row["event"] == "preempt")
    ratios = {row["step"]: row["reserve_ratio"] for row in raw.steps}

    assert [str(num) for _, num in sorted(preempted.items())] == [num for num, *_ in logged]
    assert [f"{ratios[step]:.4f}" for step in sorted(preempted)] == [new for *_, new in logged]
    assert len(logged) == 4


# -- requests --------------------------------------------------------------------------------


def test_stv001_finds_who_waited_twice_as_long_as_in_order_of_arrival(sglang: Sample) -> None:
    """The n-th to come would have been gone at the n-th finish."""
    raw, starved = sglang.raw, {}
    finishes = sorted(row["ts_ns"] for row in raw.ends.values())
    for finish_ns, (request, row) in zip(finishes, raw.arrivals.items(), strict=True):
        fair_ns = finish_ns - row["ts_ns"]
        waited_ns = sum(until - since for since, until in raw.queued[request])
        if waited_ns > 2 * fair_ns:
            starved[request] = waited_ns, fair_ns

    found = sglang.findings(RequestStarved())

    assert {
        each.request: (each.evidence["waited_ns"], each.evidence["fair_share_ns"]) for each in found
    } == starved
    assert set(starved) == {"req-02"}


def test_stv002_finds_in_how_many_steps_a_younger_one_was_let_in_before_an_older_one(
    sglang: Sample,
) -> None:
    """Who is retracted goes to the end of the queue, behind all that came later."""
    raw, order = sglang.raw, list(sglang.raw.arrivals)
    let_in = [row for row in raw.events if row["event"] in LEAVES]
    passed: dict[str, set[int]] = defaultdict(set)
    for row in let_in:
        for older in order[: order.index(row["request"])]:
            if raw.waits_at(older, row["ts_ns"]):
                passed[older].add(row["step"])
    preempted = {row["request"] for row in raw.events if row["event"] == "preempt"}

    found = sglang.findings(FcfsInversion())

    assert {each.request: each.evidence["times passed over"] for each in found} == {
        request: len(steps) for request, steps in passed.items()
    }
    assert set(passed) <= preempted
    assert sum(each.count for each in found) == sglang.checked.counts["STV002"] > 10


def test_stv004_finds_those_whose_next_token_came_after_seconds(sglang: Sample) -> None:
    raw, gaps = sglang.raw, []
    times: dict[str, list[int]] = defaultdict(list)
    for row in raw.tokens:
        times[row["request"]].append(row["ts_ns"])
    for request, at_ns in times.items():
        gaps += [(other - one, request) for one, other in pairwise(at_ns)]
    usual_ns = median(gap_ns for gap_ns, _ in gaps)

    found = sglang.findings(DecodeStalled())

    longest = {each.request: each.evidence["gap_ns"] for each in found}
    assert {each.evidence["median_gap_ns"] for each in found} == {usual_ns}
    assert longest == {request: gap_ns for gap_ns, request in gaps if gap_ns > 10**9}
    assert len(longest) == 3


def test_the_time_to_the_first_token_ends_when_the_first_one_was_sampled(sglang: Sample) -> None:
    raw = sglang.raw
    first: dict[str, int] = {}
    for row in raw.tokens:
        first.setdefault(row["request"], row["ts_ns"])

    told = blame(sglang.trace).requests.select("request", "first_token_ns").rows()

    assert dict(told) == first
    assert {name: row["ts_ns"] for name, row in raw.first("first-token").items()} == first
    assert len(first) == 16


def test_stv012_and_stv015_find_that_all_were_served_until_their_cap(sglang: Sample) -> None:
    raw = sglang.raw
    given = Counter(row["request"] for row in raw.tokens)

    assert {row["cause"] for row in raw.ends.values()} == {"finish_length"}
    assert given == {request: row["max_tokens"] for request, row in raw.arrivals.items()}
    assert (sglang.checked.counts["STV012"], sglang.checked.counts["STV015"]) == (0, 0)


# -- batches ---------------------------------------------------------------------------------


def test_stv011_finds_the_prefills_that_went_before_decodes(sglang: Sample) -> None:
    raw = sglang.raw
    hungry = {
        row["step"]: len(left_out(raw, row))
        for row in of_kind(raw, "prefill")
        if left_out(raw, row)
    }
    runs = runs_of(raw.steps, set(hungry))
    longest = max(runs, key=len)

    (found,) = sglang.findings(DecodeStarved(max_steps=0))

    assert found.evidence["steps"] == len(hungry) > 10
    assert (found.evidence["runs"], found.evidence["longest run_steps"]) == (
        len(runs),
        len(longest),
    )
    assert found.evidence["ready to decode at most"] == max(hungry.values())
    assert found.evidence["prefill_tokens"] == sum(row["num_prefill_tokens"] for row in longest)
    assert all(num_of(raw, row, "prefill") == 0 for row in of_kind(raw, "decode"))
    assert sglang.checked.counts["STV011"] == 0


def test_bat003_finds_the_steps_with_more_requests_than_allowed(
    sglang: Sample, tmp_path: Path
) -> None:
    """What ran is within its limits; were these lower, as many steps were not."""
    batches = sglang.raw.batches
    wide = [len(rows) for rows in batches.values() if len(rows) > 3]
    chunk = sglang.raw.manifest["config"]["chunked_prefill_size"]
    prefills = [row["num_prefill_tokens"] for row in of_kind(sglang.raw, "prefill")]

    narrow = copied(sglang, tmp_path, engine={"max_num_seqs": 3, "block_size": PAGE})
    (found,) = narrow.findings(BudgetExceeded())

    assert (found.evidence["steps"], found.evidence["worst"]) == (len(wide), max(wide))
    assert (max(prefills), sglang.checked.counts["BAT003"]) == (chunk, 0)


def test_bat004_bat005_and_bat013_find_one_row_and_one_token_for_whom_it_is_due(
    sglang: Sample,
) -> None:
    raw = sglang.raw
    rows = {(step, row["request"]): row for step, rows in raw.batches.items() for row in rows}
    parts = {key for key, row in rows.items() if row["is_final_chunk"] is False}
    came_from = Counter((row["source_step"], row["request"]) for row in raw.tokens)
    positions: dict[str, list[int]] = defaultdict(list)
    for row in raw.tokens:
        positions[row["request"]].append(row["position"])

    assert len(rows) == sum(map(len, raw.batches.values()))
    assert set(came_from) == set(rows) - parts
    assert set(came_from.values()) == {1}
    assert all(sorted(each) == list(range(len(each))) for each in positions.values())
    counts = sglang.checked.counts
    assert (counts["BAT004"], counts["BAT005"], counts["BAT013"]) == (0, 0, 0)


# -- KV blocks -------------------------------------------------------------------------------


def test_kvb001_and_kvb002_find_pages_shared_and_given_back_and_none_claimed_twice(
    sglang: Sample,
) -> None:
    raw = sglang.raw
    spans = owned(raw)
    left = [span for each in spans.values() for span in each if span[2] == inf]
    last = max(row["ts_ns"] for row in raw.ends.values())

    assert (doubled(raw, 1), sglang.checked.counts["KVB001"]) == ({}, 0)
    assert pairs_of(sglang.findings(BlockDoubleOwned(overlap_ns=0))) == doubled(raw, 0)
    assert (left, sglang.checked.counts["KVB002"]) == ([], 0)
    assert max(span[2] for each in spans.values() for span in each) <= last
    assert len(spans) <= POOL // PAGE


def test_pages_that_somebody_holds_are_those_that_steps_count(sglang: Sample) -> None:
    raw = sglang.raw
    pages = owned(raw).values()

    for step in raw.steps:
        at_ns = step["formed_ns"]
        num_held = sum(any(since <= at_ns < until for _, since, until, _ in page) for page in pages)
        assert num_held == held(step), step["step"]


def test_kvb003_finds_no_retraction_for_which_there_was_room(sglang: Sample) -> None:
    preempted = [row for row in sglang.raw.decisions if row["verdict"] == "preempted"]
    lacked = [row["needed"] - row["available"] for row in preempted]

    assert (min(lacked), len(lacked)) == (PAGE, 4)
    assert sglang.findings(PreemptedWithRoom(spare_blocks=0)) == []
    (found,) = sglang.findings(PreemptedWithRoom(spare_blocks=-PAGE))
    assert found.evidence["preemptions"] == lacked.count(PAGE) == 3


def test_kvb004_finds_what_the_retracted_computed_again(sglang: Sample) -> None:
    counts = computed(sglang.raw)
    again = {request: num for request, (num, _) in counts.items() if num}
    preempted = {row["request"] for row in sglang.raw.events if row["event"] == "preempt"}

    (found,) = sglang.findings(PreemptionThrash(max_share=0.0, min_tokens=1))

    assert set(again) == preempted
    assert found.evidence["requests"] == len(again)
    assert found.evidence["recomputed_tokens"] == sum(again.values())
    assert found.evidence["run_tokens"] == sum(map(sum, counts.values()))
    assert sglang.checked.counts["KVB004"] == 0


# -- the recording ---------------------------------------------------------------------------


def test_trc_rules_find_a_recording_that_is_whole_and_infers_nothing(sglang: Sample) -> None:
    raw, counts = sglang.raw, sglang.checked.counts
    decodes = [row for rows in raw.batches.values() for row in rows if row["phase"] == "decode"]

    assert (raw.manifest["closed"], raw.manifest["dropped"]) == (True, {})
    assert raw.manifest["producer"] == "sglang"
    assert [row["step"] for row in raw.steps] == list(range(1, len(raw.steps) + 1))
    assert {row["inferred"] for row in raw.steps} == {None}
    assert {row["num_tokens"] for row in decodes} == {1}
    assert set(raw.ends) == set(raw.arrivals)
    assert (counts["TRC001"], counts["TRC003"], counts["TRC005"], counts["TRC006"]) == (0, 0, 0, 0)


def test_stv026_finds_a_request_of_which_nothing_follows_its_admission(
    sglang: Sample, tmp_path: Path
) -> None:
    raw = sglang.raw
    first = raw.first("admit")
    admitted = sorted(first.values(), key=lambda row: row["ts_ns"])
    stuck, at_ns = admitted[0]["request"], admitted[0]["ts_ns"]
    is_other = pl.col("request") != stuck
    cut = copied(
        sglang,
        tmp_path,
        only={
            "lifecycle": is_other | pl.col("ts_ns").le(at_ns),
            "batch_rows": is_other,
            "decisions": pl.lit(value=False),
        },
    )
    took = [
        row["ts_ns"] - first[request]["ts_ns"]
        for request, row in raw.ends.items()
        if request != stuck
        and request in first
        and row["event"] == "finish"
        and first[request]["ts_ns"] >= at_ns
    ]

    (found,) = cut.findings(RequestStuck(min_ns=0, min_ratio=0))

    assert (found.request, found.evidence["later ones that finished"]) == (stuck, len(took))
    assert found.evidence["the slowest of them_ns"] == max(took)
    assert sglang.checked.counts.get("STV026", 0) == 0
