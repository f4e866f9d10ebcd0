"""What holds for every rule about ranks, shared buffers and outputs, whatever the ranks did."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.rule import Rule
from stepscope.analyzers.rules.col.col008_straggler import Straggler
from tests.analyzers.absurd import Rows
from tests.analyzers.invariants.faulty_ranks import faulty_ranks, ranks_trace
from tests.tiers import examples, slow

TURNED_DOWN: dict[str, Rule] = {
    "COL008": Straggler(min_late_ns=0, min_times=1, min_share=0.0, min_cost=0.0)
}
JUDGED = tuple(
    TURNED_DOWN.get(rule.code, rule) for rule in RULES if rule.code[:3] in {"BUF", "COL", "EQV"}
)


@slow
@given(faulty_ranks, st.randoms(use_true_random=False))
@settings(max_examples=examples(20))
def test_findings_do_not_depend_on_the_order_of_rows(rows: Rows, random: Random) -> None:
    shuffled = {table: random.sample(listed, len(listed)) for table, listed in rows.items()}

    assert _told(rows) == _told(shuffled)


@slow
@given(faulty_ranks)
@settings(max_examples=examples(15))
def test_findings_do_not_depend_on_the_number_of_the_rank(rows: Rows) -> None:
    moved = {
        table: [row | {"rank": row["rank"] + 5} for row in listed] for table, listed in rows.items()
    }

    assert _without_ranks(_told(rows)) == _without_ranks(_told(moved))


@slow
@given(faulty_ranks)
@settings(max_examples=examples(15))
def test_a_finding_has_a_place_a_count_and_numbers(rows: Rows) -> None:
    for found in check(ranks_trace(rows), JUDGED).findings:
        assert found.count > 0
        assert found.ts_ns is not None
        assert found.evidence
        assert "None" not in found.message


def _told(rows: Rows) -> list[dict[str, Any]]:
    return [each.as_dict() for each in check(ranks_trace(rows), JUDGED).findings]


def _without_ranks(found: list[dict[str, Any]]) -> list[str]:
    return [re.sub(r"'rank': \d+", "", re.sub(r"\brank \d+", "rank", str(each))) for each in found]
