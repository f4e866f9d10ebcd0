"""A rule that cannot judge says so: a column that is null throughout was not recorded."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.views.known import NUM_FIRST, knows
from stepscope.ingest.schema import BY_NAME
from tests.analyzers.check.least_faults import LEAST_FAULTS, LeastFault
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

# The schema wants these, and readers of other formats cannot always give them.
LACKING = {("steps", "kind"), ("lifecycle", "request")}
STILL_JUDGED = {
    ("COR004", "tasks.ready_ns"): "a MIX that ran was ready when its blocks were",
    ("COR007", "tasks.retired_ns"): "tasks that ran end with their last block",
    ("COR011", "core_spans.core_kind"): "a declared core has a group too",
    ("STV001", "lifecycle.deadline_ns"): "fair shares need no deadline",
    ("STV002", "lifecycle.by_request"): "who was admitted before whom",
    ("BAT003", "steps.token_budget"): "max_num_seqs is a limit too",
    ("BAT003", "steps.num_prefill_tokens"): "whether the reserve fits the budget",
    ("BAT004", "lifecycle.request"): "two rows of one request",
    ("BAT004", "lifecycle.step"): "two rows of one request",
    ("BAT005", "lifecycle.request"): "tokens behind the one that ends the output",
    ("BAT010", "steps.num_decode_reqs"): "the path of each segment",
    ("COL001", "collectives.dtype"): "other operations",
    ("COL001", "collectives.num_elements"): "other operations",
    ("COL001", "collectives.command"): "other operations",
    ("COL001", "collectives.slot"): "other operations",
    ("COL001", "collectives.dur_ns"): "other operations",
    ("COL002", "collectives.expected_ranks"): "ranks that use the group",
    ("TRC002", "collectives.dur_ns"): "the order on each rank",
    ("TRC003", "steps.inferred"): "null is how a recorded step says so",
}
"""What a rule still judges without the column, and so may be clean."""


@looped("fault", LEAST_FAULTS, ids=str)
def test_the_least_fault_is_found(fault: LeastFault) -> None:
    result = check(fault.trace(), (fault.rule,))

    assert result.counts.get(fault.rule.code), "not found, or not applicable"


def test_every_rule_has_a_least_fault() -> None:
    assert {fault.rule.code for fault in LEAST_FAULTS} == {rule.code for rule in RULES}


@slow
@looped("fault", LEAST_FAULTS, ids=str)
def test_without_a_column_that_a_rule_reads_it_is_not_clean(fault: LeastFault) -> None:
    code = fault.rule.code
    clean = set()
    for table, column in fault.columns():
        is_given = column in ("rank", "ts_ns") or column in BY_NAME[table].required
        if is_given and (table, column) not in LACKING:
            continue
        result = check(fault.trace(without=(table, column)), (fault.rule,))
        if result.counts == {code: 0}:
            clean.add(f"{table}.{column}")

    assert clean <= {column for rule, column in STILL_JUDGED if rule == code}


def test_what_is_still_judged_is_in_use() -> None:
    """An entry that is not needed any more would hide a false answer that comes back."""
    used = {
        (fault.rule.code, f"{table}.{column}")
        for fault in LEAST_FAULTS
        for table, column in fault.columns()
        if (fault.rule.code, f"{table}.{column}") in STILL_JUDGED
        and check(fault.trace(without=(table, column)), (fault.rule,)).counts
        == {fault.rule.code: 0}
    }
    assert used == set(STILL_JUDGED)


def test_a_column_is_known_that_has_its_only_value_in_the_last_row() -> None:
    rows = [{"step": n, "kind": "decode"} for n in range(NUM_FIRST + 10)]
    late = trace_of(steps=[*rows, {"step": 9_999, "kind": "decode", "num_waiting": 1}])

    assert knows(late, "steps", "steps.num_waiting")
    assert not knows(late, "steps.num_waiting", "steps.num_running")
    assert not knows(late, "batch_rows")


def test_a_column_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(steps=[{"step": 1, "kind": "decode"}])
    first = knows(trace, "steps.kind"), knows(trace, "steps.num_waiting")
    monkeypatch.setattr(trace, "steps", pl.LazyFrame())

    assert (knows(trace, "steps.kind"), knows(trace, "steps.num_waiting")) == first
