"""Rules about ranks, races and outputs are not applicable where nothing could be found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import access, collective, said, slot
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


@looped(
    ("tables", "codes"),
    [
        ({"collectives": [collective(0, 0)]}, {"COL001", "COL002", "COL005", "COL008"}),
        ({"collectives": [collective(0, 0), collective(1, 7)]}, {"COL001"}),
        ({"collectives": [collective(rank, 0) for rank in (0, 0, 1, 1)]}, {"COL001"}),
        ({"collectives": [collective(rank, 0) | {"ordinal": None} for rank in (0, 1)]}, {"COL001"}),
        ({"counters": [{"name": "masked rows", "value": 1.0}]}, {"COL006"}),
        ({"allocations": [slot(0, 0, "a")]}, {"COL003"}),
        ({"outputs": [said("a", 0, None, None)]}, {"EQV001", "EQV004"}),
        ({"outputs": [said("a", 0, "a0", None)], "batch_rows": [], "accesses": []}, {"EQV001"}),
        ({"accesses": [access("host", "read", 0)]}, {"EQV002"}),
    ],
)
def test_a_table_that_does_not_tell_it_is_not_clean(
    tables: dict[str, Any], codes: set[str]
) -> None:
    result = check(trace_of(**tables))

    assert codes <= set(result.not_applicable)


@slow
def test_a_trace_of_two_ranks_is_judged_by_all_rules_of_ranks(record: Record) -> None:
    pytest.importorskip("torch")
    result = check(record("ep-multiplexing", max_tokens="5"))

    judged = {"COL001", "COL002", "COL003", "COL004", "COL005", "COL006", "COL007", "COL008"}
    assert judged | {"EQV001", "EQV004", "BUF003"} <= set(result.counts)
    assert {"COL009", "EQV002", "EQV003"} <= set(result.not_applicable)


def test_the_profile_of_one_real_rank_says_nothing_of_others(shared_data: Path) -> None:
    result = check(Trace.open(shared_data / "kineto" / "hta_nccl_data.json.gz"))

    assert {"COL001", "COL002", "COL008"} <= set(result.not_applicable)
    assert result.counts["COL007"] == 0
