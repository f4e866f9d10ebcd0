"""What holds for every rule, whatever the trace."""

from __future__ import annotations

import math
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.rules.cor.cor001_mix_on_occupied_group import MixOnOccupiedGroup
from stepscope.analyzers.rules.cor.cor002_core_double_booked import CoreDoubleBooked
from stepscope.analyzers.rules.cor.cor003_mix_parts_skewed import MixPartsSkewed
from stepscope.analyzers.rules.cor.cor004_mix_starved import MixStarved
from stepscope.analyzers.rules.cor.cor005_pending_behind_busy import PendingBehindBusy
from stepscope.analyzers.rules.cor.cor006_idle_core_ready_work import IdleCoreReadyWork
from stepscope.analyzers.rules.cor.cor008_sync_start_split import SyncStartSplit
from stepscope.analyzers.rules.cor.cor009_dispatch_bound import DispatchBound
from stepscope.analyzers.rules.cor.cor010_dispatch_stalled import DispatchStalled
from stepscope.analyzers.rules.cor.cor011_wrong_core import WrongCore
from stepscope.analyzers.rules.kvb.kvb003_preempted_with_room import PreemptedWithRoom
from stepscope.analyzers.rules.stv.stv001_request_starved import RequestStarved
from stepscope.analyzers.rules.stv.stv002_fcfs_inversion import FcfsInversion
from stepscope.analyzers.rules.stv.stv003_bucket_starved import BucketStarved
from stepscope.analyzers.rules.trc.trc002_clock_backwards import ClockBackwards
from stepscope.analyzers.rules.trc.trc004_rank_lost import RankLost
from stepscope.analyzers.rules.trc.trc005_recompute_mislabelled import RecomputeMislabelled
from stepscope.ingest.manifest import Writer, manifest_name, write_manifest
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage.store import parquet_name, write_parquet
from stepscope.ingest.trace import Trace
from tests.analyzers.absurd import Rows, absurd_rows, faulty_rows, trace_from
from tests.analyzers.rows import decision, event, mix, part, task
from tests.looped import looped
from tests.tiers import examples, slow
from tests.traces import trace_of

# Rules with their thresholds turned down, so that absurd traces are full of findings.
TURNED_DOWN: tuple[Rule, ...] = (
    MixOnOccupiedGroup(limit=2),
    CoreDoubleBooked(limit=2),
    MixPartsSkewed(max_share=0.0),
    MixStarved(max_turns=0.0, max_wait_ns=0),
    PendingBehindBusy(max_share=0.0, grace_ns=0),
    IdleCoreReadyWork(max_share=0.0, grace_ns=0),
    SyncStartSplit(grace_ns=0, per_part_ns=0),
    DispatchBound(max_ratio=0.0),
    DispatchStalled(min_stall_ns=0, limit=2),
    WrongCore(limit=2),
    RequestStarved(max_shares=0.1),
    FcfsInversion(limit=2),
    BucketStarved(max_misses=0),
    PreemptedWithRoom(spare_blocks=-40),
    ClockBackwards(tolerance_ns=0, skew_ns=0),
    RankLost(max_gaps=0.0, min_signs=1),
    RecomputeMislabelled(max_drafts=0),
)
_TEXTS = ("message", "evidence")
_BY_CODE = {rule.code: rule for rule in TURNED_DOWN}
SENSITIVE = tuple(_BY_CODE.get(rule.code, rule) for rule in RULES)


@slow
@given(absurd_rows)
@settings(max_examples=examples(15))
def test_no_rule_raises_on_an_absurd_trace(rows: Rows) -> None:
    check_judged(rows)


@slow
@given(absurd_rows)
@settings(max_examples=60)
def test_no_rule_raises_on_any_of_many_absurd_traces(rows: Rows) -> None:
    check_judged(rows)


def check_judged(rows: Rows) -> None:
    result = check(trace_from(rows), SENSITIVE)

    for found in result.findings:
        assert found.count > 0
        assert found.as_dict()["message"]


@slow
@given(faulty_rows | absurd_rows, st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_findings_do_not_depend_on_the_order_of_rows(rows: Rows, random: Random) -> None:
    check_shuffled(rows, random)


@slow
@given(faulty_rows | absurd_rows, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_findings_of_many_traces_do_not_depend_on_the_order_of_rows(
    rows: Rows, random: Random
) -> None:
    check_shuffled(rows, random)


def check_shuffled(rows: Rows, random: Random) -> None:
    shuffled = {table: random.sample(listed, len(listed)) for table, listed in rows.items()}

    assert _plain(rows) == _plain(shuffled)


@slow
@given(faulty_rows | absurd_rows, st.integers(1, 4))
@settings(max_examples=10)
def test_findings_do_not_depend_on_how_the_trace_is_split_into_files(
    tmp_path_factory: pytest.TempPathFactory, rows: Rows, size: int
) -> None:
    folder = tmp_path_factory.mktemp("split")
    trace = trace_from(rows)
    _save_in_files_of(size, trace, folder)

    assert _told(Trace.open(folder)) == _told(trace)


@slow
@given(faulty_rows | absurd_rows)
@settings(max_examples=examples(15))
def test_findings_do_not_depend_on_the_number_of_the_rank(rows: Rows) -> None:
    moved = {
        table: [row | {"rank": row["rank"] + 5} for row in listed] for table, listed in rows.items()
    }

    back = [found | {"rank": _minus(found["rank"], 5)} for found in _plain(moved)]

    assert _without_rank_in_text(_plain(rows)) == _without_rank_in_text(back)


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_finds_nothing_in_empty_tables(rule: Rule) -> None:
    nothing: dict[str, Any] = {table.name: [] for table in TABLES}

    assert rule.check(trace_of(**nothing)) == []


def test_a_trace_of_everything_at_once_is_found_the_same_in_any_order() -> None:
    tables = _everything()
    expected = check(trace_of(**tables)).as_dict()
    backwards: dict[str, Any] = {table: rows[::-1] for table, rows in tables.items()}

    assert check(trace_of(**backwards)).as_dict() == expected
    assert sum(expected["counts"].values()) > 5


def _everything() -> dict[str, Any]:
    spans = [part(1, 2, 1_000, 8_000), part(3, 1, 0, 6_000)]
    spans += mix(2, {0: 5_000, 1: 5_000, 2: 8_000}, ended=20_000, dispatched=5_000)
    life = [event("old", "arrive", 0, deadline_ns=50), event("young", "arrive", 1)]
    life += [event("young", "admit", 5), event("young", "finish", 60), event("old", "admit", 70)]
    buckets = [
        decision("bucket", bucket, verdict, step, holder=holder, instead="b2")
        for step in range(20)
        for bucket, verdict, holder in (("b1", "passed-over", "old"), ("b2", "chosen", "young"))
    ]
    needless = decision("request", "old", "preempted", 9, needed=1, available=3)
    return {
        "core_spans": spans,
        "tasks": [task(number, f"kernel {number}") for number in range(1, 4)],
        "lifecycle": life,
        "decisions": [*buckets, needless],
        "steps": [{"step": 1, "ts_ns": 0, "dur_ns": 5, "kind": "decode", "inferred": "tag"}],
    }


def _save_in_files_of(size: int, trace: Trace, folder: Path) -> None:
    """Write a trace as an engine does whose journal holds `size` rows to a segment."""
    write_manifest(trace.manifest, folder / manifest_name(Writer()))
    for table in TABLES:
        rows = trace.table(table.name).collect()
        for (rank,), of_rank in rows.group_by("rank", maintain_order=True):
            for number, piece in enumerate(of_rank.iter_slices(size)):
                name = parquet_name(number, number)
                write_parquet(piece, folder / table.name / f"rank={rank}" / name)


def _plain(rows: Rows) -> list[dict[str, Any]]:
    return _told(trace_from(rows))


def _told(trace: Trace) -> list[dict[str, Any]]:
    return [_without_nan(each.as_dict()) for each in check(trace, SENSITIVE).findings]


def _without_nan(found: dict[str, Any]) -> dict[str, Any]:
    evidence = {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in found["evidence"].items()
    }
    return found | {"evidence": evidence}


def _without_rank_in_text(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        each | {field: re.sub(r"\brank \d+", "rank", str(each[field])) for field in _TEXTS}
        for each in found
    ]


def _minus(rank: int | None, by: int) -> int | None:
    return None if rank is None else rank - by
