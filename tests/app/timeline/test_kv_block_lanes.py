"""The map of KV blocks: a span for each ownership, and how full the pool was."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from stepscope.app import palette
from stepscope.app.present.blocks import Fact, Links, Paragraph, Table
from stepscope.app.present.details import span_blocks
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes.kv_blocks import colours_of
from stepscope.app.timeline.navigator import Navigator
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import drawn, spans_of
from tests.conftest import ROOT
from tests.traces import trace_of

KV = "KV blocks"


def row(block: int, op: str, owner: str, ts_ns: int, **more: Any) -> dict[str, Any]:
    return {"resource": "kv-block", "id": block, "op": op, "owner": owner, "ts_ns": ts_ns, **more}


def shared() -> Trace:
    return trace_of(
        allocations=[
            row(4, "claim", "a", 0, generation=3), row(4, "share", "b", 10),
            row(4, "cache", "a", 12, block_hash="f00"), row(4, "release", "a", 20),
            row(4, "release", "b", 30), row(4, "claim", "c", 60), row(5, "claim", "c", 60),
        ],
        lifecycle=[{"ts_ns": 0, "request": "a", "event": "arrive"},
                   {"ts_ns": 100, "request": "a", "event": "finish"}],
        steps=[{"step": 1, "ts_ns": 0, "kind": "decode", "kv_blocks_total": 8}],
    )  # fmt: skip


def test_a_block_shows_its_owners_one_after_another_and_when_it_is_free_and_cached() -> None:
    lanes = drawn(Timeline(shared()), KV)

    assert [(start, end, label) for start, end, _, label in lanes["block 4"]] == [
        (0, 20, "a"), (20, 30, "b"), (30, 60, "cached"), (60, 101, "c"),
    ]  # fmt: skip
    owners = [state for _, _, state, label in lanes["block 4"] if label != "cached"]
    assert len({*owners}) == 3
    assert lanes["block 5"][0][2] == owners[-1]  # one request, one colour


def test_how_full_the_pool_was_is_a_lane_that_stays_while_the_blocks_are_collapsed() -> None:
    timeline = Timeline(shared())
    pool = next(each for each in timeline.lanes if each.kind == "counter" and each.section == KV)

    series = timeline.series(pool.id, 0, 100, 10)
    view = Navigator(timeline, collapsed={KV})

    assert series is not None
    assert series.values.tolist() == [1, 1, 1, 0, 0, 0, 2, 2, 2, 2]
    assert (series.low, series.high) == (0, 8)  # of all blocks of the pool
    assert [each.lane.id for each in view.rows if each.section == KV and each.lane] == [pool.id]


def test_a_selected_block_says_who_owned_it_since_when_and_who_shared_it() -> None:
    trace = shared()
    timeline = Timeline(trace)
    lane = next(each.id for each in timeline.lanes if each.label == "block 4")

    blocks = [*span_blocks(spans_of(timeline, lane)[0], timeline, trace)]

    texts = [block.text for block in blocks if isinstance(block, Paragraph)]
    facts = {block.label: block.values[0] for block in blocks if isinstance(block, Fact)}
    table = next(block for block in blocks if isinstance(block, Table))
    assert "a owned KV block 4 for 20 ns and gave it back." in texts
    assert (facts["owner"], facts["generation"]) == ("a", "3")
    assert [each[0] for each in table.rows] == ["b"]
    assert [
        link.text for block in blocks if isinstance(block, Links) for link in block.choices
    ] == ["its owner"]


def test_a_search_for_a_request_finds_its_blocks() -> None:
    timeline = Timeline(shared())

    hits = [(hit.kind, hit.label, hit.ts_ns, hit.count) for hit in timeline.find("c")]

    assert ("block", "c: its KV blocks", 60, 2) in hits
    assert timeline.find("block 5")[0].lane == timeline.find("block 5")[0].lane is not None


@pytest.mark.parametrize(("num_blocks", "is_collapsed"), [(12, False), (13, True)])
def test_many_blocks_are_collapsed_at_first(num_blocks: int, is_collapsed: bool) -> None:
    rows = [row(block, "claim", "a", 0) for block in range(num_blocks)]
    steps = [{"step": 1, "ts_ns": 0, "kind": "decode"}]

    timeline = Timeline(trace_of(allocations=rows, steps=steps))

    assert (KV in timeline.collapsed_at_first) == is_collapsed


def test_owners_that_follow_each_other_have_colours_of_their_own() -> None:
    pairs = np.array([(0, 7), (7, 14), (0, 14), (3, 10)])

    colour = colours_of(15, pairs)

    assert all(colour[one] != colour[other] for one, other in pairs.tolist())


def test_blocks_of_a_recorded_vllm_have_colours_that_differ_from_those_before_and_after() -> None:
    timeline = Timeline(Trace.open(ROOT / "sample_traces" / "vllm_crowd.trace"))
    lanes = [each.id for each in timeline.lanes if each.section == KV and each.kind == "spans"]

    for spans in (spans_of(timeline, lane) for lane in lanes):
        owned = [span for span in spans if span.state != palette.CACHED]
        for one, other in pairwise(owned):
            assert one.state != other.state or one.label == other.label


def test_a_trace_without_kv_blocks_has_no_map_of_them() -> None:
    slot = {"resource": "slot", "id": 1, "op": "claim", "owner": "a"}

    assert not [each for each in Timeline(trace_of(allocations=[slot])).lanes if each.section == KV]
