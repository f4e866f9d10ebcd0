"""How long the steps of `ep-multiplexing` take, as its report measured them."""

from __future__ import annotations

import pytest

from tests.engine.ep_runs import (
    recorded,
    served,
)
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import slow


@slow
@pytest.mark.parametrize("num_requests", ["2", "4"])
def test_throughput_is_about_the_same_one_by_one_or_together(num_requests: str) -> None:
    one_by_one, together = (
        float(served(variant, requests=num_requests, max_tokens="16")["tokens_per_s"])
        for variant in ("before", "after")
    )

    assert 0.95 < together / one_by_one < 1.2


def test_the_grouped_gemm_takes_about_1_6_times_the_step_of_four_rows() -> None:
    right, wrong = (
        float(served(variant)["decode_step_ms"]) for variant in ("after", "v2-grouped-gemm")
    )

    assert 1.5 < wrong / right < 1.65


@slow
def test_a_burst_takes_as_long_as_the_report_measured_with_rows_staged_here_or_there() -> None:
    through_host, on_device = (
        float(served(each, max_tokens="37")["makespan_s"])
        for each in ("v2-host-staging", "v2-device-staging")
    )

    assert on_device == pytest.approx(5.89, rel=0.01)
    assert through_host == pytest.approx(7.01, rel=0.03)
    assert 1.15 < through_host / on_device < 1.19


def test_two_rows_are_faster_fused_than_one_by_one() -> None:
    fused, one_by_one = (
        float(served("after", requests="2", **fault)["decode_step_ms"])
        for fault in ({}, {"fault": "path-never-reached"})
    )

    assert one_by_one / fused == pytest.approx(61 / 52, rel=0.02)


@slow
@looped(
    ("num_requests", "variant", "recurrent_ms", "attention_ms"),
    [
        ("2", "after", 35, 12),
        ("4", "after", 88, 24),
        ("4", "v2-grouped-gemm", 140, 40),
        ("4", "v2-grouped-attention", 88, 40),
    ],
)
def test_layers_take_what_the_report_measured(
    recorded_once: RecordedOnce,
    num_requests: str,
    variant: str,
    recurrent_ms: float,
    attention_ms: float,
) -> None:
    rows = recorded(recorded_once, variant, requests=num_requests)

    for kind, ms in (("recurrent", recurrent_ms), ("attention", attention_ms)):
        told = rows.of("counters", name=f"{kind} layers", step=2)
        assert [row["value"] / 1e6 for row in told] == [pytest.approx(ms, abs=0.05)]


@slow
@pytest.mark.parametrize(("num_requests", "wins"), [("41", False), ("42", True)])
def test_the_grouped_gemm_wins_where_rows_share_enough_experts(
    num_requests: str, wins: bool
) -> None:
    settings = {"requests": num_requests, "slots": "64", "max_tokens": "2", "prompt_len": "1"}
    one_by_one, grouped = (
        float(served(variant, **settings)["decode_step_ms"])
        for variant in ("after", "v2-grouped-gemm")
    )

    assert (grouped < one_by_one) is wins


@slow
@looped(
    ("num_requests", "variant", "path"),
    [
        ("1", "after", "per-token"),
        ("2", "after", "fused"),
        ("3", "after", "fused"),
        ("4", "after", "per-token"),
        ("4", "v2-grouped-gemm", "grouped-gemm"),
        ("4", "v2-grouped-attention", "per-token + grouped-gemm"),
        ("4", "before", "per-token"),
    ],
)
def test_the_path_of_the_experts_is_chosen_by_width_and_told(
    recorded_once: RecordedOnce, num_requests: str, variant: str, path: str
) -> None:
    rows = recorded(recorded_once, variant, requests=num_requests)

    for rank in (0, 1):
        decodes = rows.of("steps", rank=rank, kind="decode")
        assert {row["executed_path"] for row in decodes} == {f"decode: {path}"}
    assert {row["executed_path"] for row in rows.of("steps", kind="prefill")} == {
        "prefill: grouped-gemm"
    }


def test_a_path_decides_how_many_all_reduces_a_layer_has(recorded_once: RecordedOnce) -> None:
    for num_requests, variant, per_layer in (
        ("2", "after", 1),
        ("4", "after", 4),
        ("4", "v2-grouped-gemm", 4),
    ):
        rows = recorded(recorded_once, variant, requests=num_requests)
        (step,) = rows.of("steps", rank=0, step=2)
        reduced = rows.of("collectives", rank=0, step=2, op="all-reduce")
        assert step["kind"] == "decode"
        assert len(reduced) == 2 * per_layer
        assert sum(row["num_elements"] for row in reduced) == 2 * int(num_requests) * 64
