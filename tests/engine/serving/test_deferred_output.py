"""Tokens that the host learns a step late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stepscope.engine.config import OPTIONAL, EngineConfig
from stepscope.engine.plan import PlanRefused
from stepscope.engine.schedulers.paged import Paged
from stepscope.ingest.errors import ConfigError
from tests.engine.rows import Rows
from tests.engine.small_engines import request, serve

CONFIG = EngineConfig(
    num_kv_blocks=64, block_size=2, max_num_batched_tokens=8, max_num_seqs=4, deferred_output=True
)


def outputs(rows: Rows, name: str) -> list[tuple[Any, ...]]:
    return [
        (row["step"], row["position"], row["is_placeholder"], row["source_step"])
        for row in rows.of("outputs", request=name)
    ]


def inputs(rows: Rows, name: str) -> list[tuple[Any, ...]]:
    """Where the decodes of a request took their token from, and the step that sampled it."""
    in_batch = {(row["step"], row["row"]) for row in rows.of("batch_rows", request=name)}
    return [
        (row["step"], row["stream"], row["epoch"])
        for row in rows.of("accesses", buffer="input_ids")
        if (row["step"], row["first"]) in in_batch
    ]


def test_a_placeholder_stands_for_a_token_until_the_next_step() -> None:
    _, rows = serve([request("a", 4, 2)], Paged(), CONFIG)
    assert outputs(rows, "a") == [(1, 0, True, 1), (2, 0, False, 1), (2, 1, True, 2),
                                  (3, 1, False, 2)]  # fmt: skip


def test_an_end_is_known_a_step_late_and_the_row_meanwhile_gives_nothing() -> None:
    engine, rows = serve([request("a", 4, 9, eos_after=2)], Paged(), CONFIG)
    assert [row["step"] for row in rows.of("batch_rows")] == [1, 2, 3]
    assert [(row["event"], row["step"]) for row in rows.of("lifecycle")][-2:] == [
        ("first-token", 2), ("finish", 3),
    ]  # fmt: skip
    assert engine.ended[0].request.num_generated == 2
    assert len(rows.of("outputs", is_placeholder=False)) == 2


def test_a_decode_takes_what_the_device_sampled_in_the_step_before() -> None:
    _, rows = serve([request("a", 4, 3)], Paged(), CONFIG)
    assert inputs(rows, "a") == [(2, "device", 1), (3, "device", 2), (4, "device", 3)]


IDLING = [request("a", 4, 3), request("b", 20, 1)]


def test_a_decode_that_idled_takes_its_token_from_the_host() -> None:
    _, rows = serve(IDLING, Paged(reserve=False), CONFIG)
    assert inputs(rows, "a")[0] == (4, "host", 1)


def test_the_fault_reads_a_placeholder_there() -> None:
    faults = frozenset({"placeholder-read-as-token"})
    _, rows = serve(IDLING, Paged(reserve=False), replace(CONFIG, faults=faults))
    assert inputs(rows, "a")[:2] == [(4, "host", 0), (5, "device", 4)]


def test_nothing_is_read_by_the_host_or_written_down_where_output_is_not_deferred() -> None:
    _, rows = serve(IDLING, Paged(), replace(CONFIG, deferred_output=False))
    assert not rows.of("accesses")
    assert not rows.of("outputs", is_placeholder=True)


def test_a_token_that_is_not_known_yet_outlives_a_preemption() -> None:
    specs = [request("a", 4, 5), request("b", 4, 5)]
    engine, rows = serve(specs, Paged(), replace(CONFIG, num_kv_blocks=5))
    assert rows.of("lifecycle", event="preempt")
    for is_placeholder in (False, True):
        told = rows.of("outputs", request="b", is_placeholder=is_placeholder)
        assert [row["position"] for row in told] == [0, 1, 2, 3, 4]
    assert [each.request.num_generated for each in engine.ended] == [5, 5]


def test_both_ways_give_the_same_tokens() -> None:
    specs = [request(name, 3 + size, 5, size, eos_after=3) for size, name in enumerate("abc")]
    told = []
    for deferred in (False, True):
        _, rows = serve(specs, Paged(), replace(CONFIG, deferred_output=deferred))
        known = rows.of("outputs", is_placeholder=False)
        told.append(sorted((row["request"], row["position"], row["token"]) for row in known))
    assert told[0] == told[1]


class Drafting(Paged):
    """Says that it knows of deferred output, and drafts all the same."""

    @property
    def supports(self) -> frozenset[str]:
        return frozenset(OPTIONAL)


def test_drafts_are_refused_since_nobody_knows_what_they_follow() -> None:
    with pytest.raises(ConfigError, match="paged does not work with deferred_output"):
        serve([request("a", 4, 5)], Paged(mixed=False, mtp_k=1), CONFIG)
    with pytest.raises(PlanRefused, match="has drafts"):
        serve([request("a", 4, 5)], Drafting(mixed=False, mtp_k=1), CONFIG)
