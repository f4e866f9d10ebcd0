"""COR001: a part of a MIX took its core at once while another core it needs was held."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Severity
from stepscope.analyzers.rules.cor.cor001_mix_on_occupied_group import MixOnOccupiedGroup
from tests.analyzers.rows import decision, mix, part, task
from tests.traces import trace_of

TASKS = [task(1, "push", 32), task(2, "qk_pv", 8, "MIX")]


def test_a_mix_that_takes_the_aic_while_an_aiv_is_running_is_found() -> None:
    pushed = part(1, 2, 1_000, 8_000, block=31)
    admitted = mix(2, {0: 5_000, 1: 5_000, 2: 8_000}, ended=20_000, dispatched=5_000, block=7)
    trace = trace_of(core_spans=[pushed, *admitted], tasks=TASKS)

    (found,) = MixOnOccupiedGroup().check(trace)

    assert found.severity is Severity.ERROR
    assert (found.task, found.core, found.group, found.step) == (2, 2, 0, 1)
    assert (found.ts_ns, found.end_ns) == (5_000, 8_000)
    assert found.message == (
        "qk_pv 7/8 took AIC AIV0 of group 0 while push 31/32 held AIV1 for 3.0 µs more; "
        "its parts started 3.0 µs apart"
    )
    assert found.evidence == {
        "block": "qk_pv 7/8",
        "took": "AIC AIV0",
        "holder": "push 31/32",
        "holder core": "AIV1 (core 2)",
        "holder_ends_after_ns": 3_000,
        "parts start": "AIC 0.0 · AIV0 0.0 · AIV1 +3.0 µs",
        "held_idle_ns": 3_000,
    }


def test_who_held_it_is_known_by_the_core_where_the_decision_tells_it() -> None:
    spans = [
        part(1, 2, 1_000, 8_000, block=31),
        *mix(2, {0: 5_000, 2: 8_000}, ended=20_000, dispatched=5_000),
    ]
    other = decision("task", "2", "admitted", 4_950, reason="of another group", holder="1", core=7)
    made = decision("task", "2", "admitted", 4_900, reason="AIC is free", holder="1", core=2)

    (found,) = MixOnOccupiedGroup().check(
        trace_of(core_spans=spans, tasks=TASKS, decisions=[made, other])
    )

    assert found.evidence["admitted because"] == "AIC is free"


def test_why_the_scheduler_admitted_it_is_evidence() -> None:
    spans = [
        part(1, 2, 1_000, 8_000, block=31),
        *mix(2, {0: 5_000, 2: 8_000}, ended=20_000, dispatched=5_000),
    ]
    reason = {"reason": "the AIC is free", "instead": "group 5", "holder": "push 31/32"}
    decisions = [
        decision("task", "2", "put-back", 4_800, **reason),
        decision("task", "2", "admitted", 4_900, **reason),
        decision("task", "2", "admitted", 4_950, reason="for another block", holder="push 0/32"),
    ]

    (found,) = MixOnOccupiedGroup().check(
        trace_of(core_spans=spans, tasks=TASKS, decisions=decisions)
    )

    assert found.evidence["admitted because"] == "the AIC is free"
    assert found.evidence["free and not tried"] == "group 5"


def test_a_mix_whose_core_is_held_by_a_block_that_has_yet_to_start_is_found() -> None:
    dispatched = part(1, 1, 5_350, 8_000, dispatch_ns=5_000)
    admitted = mix(2, {0: 5_100, 1: 8_000, 2: 5_100}, ended=20_000, dispatched=5_100)

    assert len(MixOnOccupiedGroup().check(trace_of(core_spans=[dispatched, *admitted]))) == 1


def test_a_mix_on_a_free_group_is_clean() -> None:
    before = part(1, 2, 1_000, 5_000)
    admitted = mix(2, {0: 5_000, 1: 5_000, 2: 5_000}, ended=20_000, dispatched=5_000)

    assert MixOnOccupiedGroup().check(trace_of(core_spans=[before, *admitted])) == []


def test_a_mix_that_is_queued_whole_is_clean() -> None:
    busy = [part(1, core, 1_000, 7_000 + core, block=core) for core in range(3)]
    queued = mix(2, {0: 7_000, 1: 7_001, 2: 7_002}, ended=20_000, dispatched=5_000)

    assert MixOnOccupiedGroup().check(trace_of(core_spans=[*busy, *queued])) == []


def test_a_pending_part_whose_core_had_just_become_empty_is_clean() -> None:
    ended_unseen = part(1, 2, 1_000, 4_900)
    admitted = mix(2, {0: 5_000, 1: 5_000, 2: 5_350}, ended=20_000, dispatched=5_000)

    assert MixOnOccupiedGroup().check(trace_of(core_spans=[ended_unseen, *admitted])) == []


def test_the_holder_is_the_block_that_keeps_the_core_longest() -> None:
    longest, shorter = part(1, 2, 1_000, 9_000), part(3, 2, 2_000, 6_000)
    admitted = mix(2, {0: 5_000, 2: 9_000}, ended=20_000, dispatched=5_000)
    trace = trace_of(core_spans=[longest, shorter, *admitted], tasks=[task(1, "push")])

    (found,) = MixOnOccupiedGroup().check(trace)

    assert found.evidence["holder"] == "push 0/1"


def test_a_block_that_never_ended_holds_its_core() -> None:
    hung = part(1, 1, 1_000, None)
    admitted = mix(2, {0: 5_000, 1: 5_000}, ended=20_000, dispatched=5_000)

    (found,) = MixOnOccupiedGroup().check(trace_of(core_spans=[hung, *admitted]))

    assert found.message == "task 2 0 took AIC of group 0 while task 1 0 held AIV0 and never ended"
    assert "holder_ends_after_ns" not in found.evidence


def test_slots_that_were_not_recorded_are_told_from_the_times() -> None:
    pushed = part(1, 2, 1_000, 8_000, slot=None)
    admitted = mix(2, {0: 5_000, 2: 8_000}, ended=20_000, dispatched=5_000, slot=None)

    assert len(MixOnOccupiedGroup().check(trace_of(core_spans=[pushed, *admitted]))) == 1


def test_conflicts_beyond_the_limit_are_counted_in_one_finding() -> None:
    spans = []
    for number in range(5):
        at = number * 10_000
        spans.append(part(100 + number, 2, at, at + 4_000))
        spans += mix(number, {0: at + 1_000, 2: at + 4_000}, at + 9_000, dispatched=at + 1_000)

    found = MixOnOccupiedGroup(limit=2).check(trace_of(core_spans=spans))

    assert [each.count for each in found] == [1, 1, 3]
    assert (found[2].ts_ns, found[2].end_ns) == (21_000, 44_000)
