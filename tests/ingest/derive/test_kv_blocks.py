"""KV blocks as spans: what a brute-force walk over the rows says, moment by moment."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive.kv_blocks import block_holds, block_spans
from stepscope.ingest.trace import Trace
from tests.traces import trace_of

OPS = ("claim", "share", "release", "let-go", "cache", "evict")
Row = dict[str, Any]
ROWS = st.lists(
    st.builds(
        lambda block, op, owner, gap: {"id": block, "op": op, "owner": owner, "gap": gap},
        st.integers(0, 2), st.sampled_from(OPS), st.sampled_from("abc"), st.integers(0, 2),
    ),
    max_size=24,
)  # fmt: skip


def a_trace(rows: list[Row]) -> Trace:
    now, timed = 0, []
    for row in rows:
        now += row.get("gap", 1)
        own = {name: value for name, value in row.items() if name != "gap"}
        timed.append({"resource": "kv-block", "ts_ns": now, **own})
    return trace_of(allocations=timed)


def spans_of(trace: Trace) -> list[tuple[int, int, int | None, str | None]]:
    return block_spans(trace).select("id", "from_ns", "to_ns", "owner").rows()


def walked(rows: list[Row]) -> dict[tuple[int, int], str | None]:
    """At each half moment, who owns each block (None: cached), by walking over the rows."""
    holders: dict[int, list[str]] = {}
    cached: dict[int, bool] = {}
    shown: dict[tuple[int, int], str | None] = {}
    now = 0
    for row in rows:
        later = now + row["gap"]
        _show(shown, holders, cached, now, later)
        now, block, owner, op = later, row["id"], row["owner"], row["op"]
        of_block = holders.setdefault(block, [])
        if op == "claim":
            holders[block] = [owner]
        elif op == "share":
            of_block.append(owner)
        elif op in ("release", "let-go"):
            holders[block] = [each for each in of_block if each != owner]
        else:
            cached[block] = op == "cache"
    _show(shown, holders, cached, now, now + 1)
    return shown


def _show(
    shown: dict[tuple[int, int], str | None], holders: dict[int, list[str]],
    cached: dict[int, bool], since: int, until: int,
) -> None:  # fmt: skip
    for moment in range(since, until):
        for block in holders.keys() | cached.keys():
            if holders.get(block):
                shown[block, moment] = holders[block][0]
            elif cached.get(block):
                shown[block, moment] = None


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_spans_show_at_each_moment_what_a_walk_over_the_rows_does(rows: list[Row]) -> None:
    last = sum(row["gap"] for row in rows) + 1
    shown: dict[tuple[int, int], str | None] = {}

    for block, since, until, owner in spans_of(a_trace(rows)):
        for moment in range(since, last if until is None else until):
            assert (block, moment) not in shown  # no two overlap
            shown[block, moment] = owner

    assert shown == walked(rows)


def test_a_shared_block_is_owned_by_the_first_that_still_holds_it() -> None:
    trace = a_trace(
        [
            {"id": 7, "op": "claim", "owner": "a"},
            {"id": 7, "op": "share", "owner": "b"},
            {"id": 7, "op": "release", "owner": "a"},
            {"id": 7, "op": "release", "owner": "b"},
        ]
    )

    assert spans_of(trace) == [(7, 1, 3, "a"), (7, 3, 4, "b")]
    assert block_holds(trace, 0, 7).select("owner", "from_ns", "to_ns").rows() == [
        ("a", 1, 3), ("b", 2, 4),
    ]  # fmt: skip


def test_a_block_that_was_moved_from_is_free_and_one_that_was_never_released_has_no_end() -> None:
    trace = a_trace(
        [
            {"id": 1, "op": "claim", "owner": "a"},
            {"id": 2, "op": "move", "owner": "a", "source": 1},
        ]
    )

    assert spans_of(trace) == [(1, 1, 2, "a"), (2, 2, None, "a")]


def test_rows_of_slots_and_rows_without_a_block_or_a_time_are_no_ownership() -> None:
    claim = {"op": "claim", "owner": "a"}
    trace = trace_of(
        allocations=[
            {**claim, "resource": "slot", "id": 1},
            {**claim, "resource": "kv-block", "id": None},
            {**claim, "resource": "kv-block", "id": 1, "ts_ns": None},
        ]
    )

    assert spans_of(trace) == []


def test_an_owner_that_is_not_recorded_owns_a_block_all_the_same() -> None:
    trace = a_trace(
        [{"id": 1, "op": "claim", "owner": None}, {"id": 1, "op": "release", "owner": None}]
    )

    assert spans_of(trace) == [(1, 1, 2, None)]
