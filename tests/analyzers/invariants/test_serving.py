"""What holds for every rule about steps, batches, requests and blocks, whatever the engine did."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.rules.bat.bat001_mixed_never_forms import MixedNeverForms
from stepscope.analyzers.rules.bat.bat002_long_prefill_saturates import LongPrefillSaturates
from stepscope.analyzers.rules.bat.bat011_slow_path_for_width import SlowPathForWidth
from stepscope.analyzers.rules.kvb.kvb004_preemption_thrash import PreemptionThrash
from stepscope.analyzers.rules.kvb.kvb006_admit_copies_all import AdmitCopiesAll
from stepscope.analyzers.rules.stv.stv004_decode_stalled import DecodeStalled
from stepscope.analyzers.rules.stv.stv005_prefill_starved import PrefillStarved
from stepscope.analyzers.rules.stv.stv006_head_of_line_blocked import HeadOfLineBlocked
from stepscope.analyzers.rules.stv.stv007_schedule_livelock import ScheduleLivelock
from stepscope.analyzers.rules.stv.stv009_idle_capacity import IdleCapacity
from stepscope.analyzers.rules.stv.stv010_silent_stall import SilentStall
from stepscope.analyzers.rules.stv.stv011_decode_starved import DecodeStarved
from tests.analyzers.absurd import Rows
from tests.analyzers.invariants.faulty_serving import faulty_serving, serving_trace
from tests.tiers import examples, slow

# Thresholds turned down, so that nearly every trace has findings of some rules.
TURNED_DOWN: tuple[Rule, ...] = (
    DecodeStalled(max_ratio=0.0, min_gap_ns=0),
    PrefillStarved(max_steps=0, min_tokens=3),
    HeadOfLineBlocked(max_ratio=0.0),
    ScheduleLivelock(max_times=0, max_steps=0),
    IdleCapacity(max_steps=0, free_share=0.0),
    SilentStall(max_steps=0, free_share=0.0),
    DecodeStarved(max_steps=0),
    MixedNeverForms(max_steps=0, min_share=0.0),
    LongPrefillSaturates(min_share=0.0, at_least=1),
    SlowPathForWidth(max_ratio=0.0, at_least=1),
    PreemptionThrash(max_share=0.0),
    AdmitCopiesAll(max_ratio=0.0),
)
_BY_CODE = {rule.code: rule for rule in TURNED_DOWN}
SERVING = tuple(
    _BY_CODE.get(rule.code, rule)
    for rule in RULES
    if rule.code[:3] in {"STV", "BAT", "KVB"} or rule.code == "BUF006"
)


@slow
@given(faulty_serving, st.randoms(use_true_random=False))
@settings(max_examples=examples(20))
def test_findings_do_not_depend_on_the_order_of_rows(rows: Rows, random: Random) -> None:
    shuffled = {table: random.sample(listed, len(listed)) for table, listed in rows.items()}

    assert _told(rows) == _told(shuffled)


@slow
@given(faulty_serving)
@settings(max_examples=examples(15))
def test_findings_do_not_depend_on_the_number_of_the_rank(rows: Rows) -> None:
    moved = {
        table: [row | {"rank": row["rank"] + 5} for row in listed] for table, listed in rows.items()
    }

    back = [each | {"rank": _minus(each["rank"], 5)} for each in _told(moved)]

    assert _told(rows) == back


def _told(rows: Rows) -> list[dict[str, Any]]:
    return [each.as_dict() for each in check(serving_trace(rows), SERVING).findings]


def _minus(rank: int | None, by: int) -> int | None:
    return None if rank is None else rank - by
