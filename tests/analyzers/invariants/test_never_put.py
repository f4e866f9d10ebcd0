"""A rule is not clean where the moment that it judges never came: nobody has looked then."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.check.run import check
from tests.analyzers.rank_rows import access, collective, said, slot
from tests.analyzers.rows import decision, event, mix, part, task
from tests.analyzers.serving_rows import decode, owned, segment, step, token
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SLOTS = {"layout": {"num_slots": 2, "slot_tokens": 2, "token_bytes": 4}}


def judged(code: str, **tables: Any) -> bool:
    return code in check(trace_of(**tables)).counts


@looped(("last_ns", "is_judged"), [(90, True), (50, False)])
def test_blocks_of_who_ends_in_the_last_moment_are_not_watched(
    last_ns: int, is_judged: bool
) -> None:
    lives = [event("a", "arrive", 0), event("a", "finish", 50), event("b", "arrive", last_ns)]
    blocks = [owned("claim", 0, "a", 1), owned("release", 0, "a", 50)]

    assert judged("KVB002", lifecycle=lives, allocations=blocks) is is_judged


@slow
@looped(
    ("spans", "is_judged"),
    [(mix(1, {0: 5, 1: 5}, 90, 5), True), ([part(1, 0, 5, 90)], False)],
    ids=["MIX", "AIV"],
)
@looped("code", ["COR001", "COR003", "COR004"])
def test_mixes_are_judged_where_there_are_any(
    code: str, spans: list[dict[str, Any]], is_judged: bool
) -> None:
    assert judged(code, core_spans=spans) is is_judged


@looped("together", [True, False])
def test_starts_together_are_judged_where_a_task_is_to_start_so(together: bool) -> None:
    tasks = [task(1, "sync", 2, is_sync_start=together)]

    assert judged("COR008", core_spans=[part(1, 0, 5, 90)], tasks=tasks) is together


@looped("num", [1, 2])
def test_stalls_are_judged_where_a_request_got_two_tokens(num: int) -> None:
    outputs = [token(number, "a", number) for number in range(num)]

    assert judged("STV004", outputs=outputs, steps=[step(0), step(1)]) is (num == 2)


@looped("num", [1, 2])
@looped(("code", "split"), [("BUF002", True), ("BUF004", False), ("BUF005", False)])
def test_rows_that_overwrite_each_other_are_judged_where_there_are_two(
    code: str, split: bool, num: int
) -> None:
    uses = [
        access("compute", "write", 10 + place, segment=place, epoch=place) for place in range(num)
    ]
    segments = [segment(1, 0, 1), segment(1, 1, 1)] if split else [segment(9, 0, 1)]

    assert judged(code, accesses=uses, segments=segments) is (num == 2)


@looped("second", ["b", None])
def test_what_an_earlier_owner_left_is_judged_where_there_was_one(second: str | None) -> None:
    owners = [slot(0, 0, "a"), slot(0, 0, "a", "release", ts_ns=50)]
    after = [slot(0, 0, second, ts_ns=60)] if second else []
    uses = [access("host", op, 10, epoch=1) for op in ("write", "read")]

    found = judged("KVB005", allocations=owners + after, accesses=uses, config=SLOTS)

    assert found is (second is not None)


@looped("num_slots", [1, 2])
def test_copies_of_other_slots_are_judged_where_there_are_others(num_slots: int) -> None:
    sizes = {"layout": {**SLOTS["layout"], "num_slots": num_slots}}

    found = judged("KVB006", allocations=[slot(0, 0, "a")], config=sizes,
                   accesses=[access("host", "write", 10, epoch=1)])  # fmt: skip

    assert found is (num_slots == 2)


@looped("step_of_write", [0, 1])
def test_a_slot_taken_back_is_judged_where_one_was_written_after_the_step_of_its_claim(
    step_of_write: int,
) -> None:
    uses = [access("host", "write", 10, step=step_of_write, epoch=1)]

    found = judged("BUF006", allocations=[slot(0, 0, "a")], accesses=uses, config=SLOTS)

    assert found is (step_of_write == 1)


@looped(("kind", "is_judged"), [("decode", True), ("idle", False)])
def test_paths_are_missed_where_any_batch_ran(kind: str, is_judged: bool) -> None:
    declared = {"declared_paths": {"decode": ["fused"]}}

    found = judged("BAT012", steps=[step(1, kind, executed_path="eager")], config=declared)

    assert found is is_judged


@looped("num_chunks", [1, 2])
def test_chunks_are_judged_where_a_prompt_came_in_several(num_chunks: int) -> None:
    chunks = [
        {
            "step": number + 1, "ts_ns": number, "request": "a", "phase": "prefill",
            "num_tokens": 4, "num_computed": 4 * number, "is_final_chunk": number == num_chunks - 1,
        }
        for number in range(num_chunks)
    ]  # fmt: skip
    outputs = [said("a", 0, "x", "x", step=num_chunks, source_step=num_chunks)]

    found = judged(
        "EQV003", batch_rows=chunks, outputs=outputs, lifecycle=[event("a", "arrive", 0)]
    )

    assert found is (num_chunks == 2)


LACKS_BLOCKS = {"resource": "kv-block", "needed": 3, "available": 1, "holder": "a"}


@looped("kind", ["bucket", "request"])
def test_buckets_are_judged_where_any_competed(kind: str) -> None:
    rows = [decision(kind, "len=8", "passed-over", 5, holder="a")]

    assert judged("STV003", lifecycle=[event("a", "arrive", 0)], decisions=rows) is (
        kind == "bucket"
    )


@looped(
    ("happened", "told", "is_judged"),
    [
        ("admit", [], True),
        ("preempt", [], False),
        ("preempt", [decision("request", "a", "preempted", 5)], False),
        ("preempt", [decision("request", "a", "preempted", 5, **LACKS_BLOCKS)], True),
    ],
    ids=["nobody was", "not decided", "not told what was needed", "told"],
)
def test_preemptions_are_judged_where_it_is_told_what_was_needed(
    happened: str, told: list[dict[str, Any]], is_judged: bool
) -> None:
    deferred = decision("request", "b", "deferred", 1, **LACKS_BLOCKS)
    lives = [event("a", "arrive", 0), event("a", happened, 5)]

    assert judged("KVB003", lifecycle=lives, decisions=[deferred, *told]) is is_judged


@looped(("end", "is_judged"), [("finish", True), ("reject", False)])
def test_rejections_are_judged_where_it_is_told_what_was_lacking(end: str, is_judged: bool) -> None:
    deferred = decision("request", "b", "deferred", 1, **LACKS_BLOCKS)
    lives = [event("a", "arrive", 0), event("a", end, 5)]
    steps = [decode(1, 1, kv_blocks_total=120)]

    assert judged("STV008", lifecycle=lives, decisions=[deferred], steps=steps) is is_judged


@looped(
    ("rows", "is_judged"),
    [
        ([collective(rank, 1) for rank in (0, 1)], True),
        ([collective(rank, 1, "broadcast") for rank in (0, 1)], False),
        ([collective(rank, 1 + rank) for rank in (0, 1)], False),
        ([collective(0, 1), collective(1, 1, dur_ns=None)], False),
    ],
    ids=["waited for", "of a root", "of other numbers", "never left"],
)
def test_stragglers_are_judged_where_ranks_were_in_one_collective(
    rows: list[dict[str, Any]], is_judged: bool
) -> None:
    assert judged("COL008", collectives=rows) is is_judged


@looped("ts_ns", [5, None])
def test_versions_are_judged_where_it_is_told_when_they_were_spoken(ts_ns: int | None) -> None:
    told = [
        {"rank": rank, "ts_ns": ts_ns, "name": "protocol version", "value": 1.0 + rank}
        for rank in (0, 1)
    ]

    assert judged("COL006", counters=told) is (ts_ns is not None)
