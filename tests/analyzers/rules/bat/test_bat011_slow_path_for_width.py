"""BAT011: the path taken at a width costs far more than another one that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat011_slow_path_for_width import SlowPathForWidth
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import decode
from tests.looped import looped
from tests.traces import trace_of


def ran(path: str, width: int, dur_ns: int, first: int, num_steps: int = 3) -> list[Row]:
    return [
        decode(n, width, executed_path=path, ts_ns=1_000 * n, dur_ns=dur_ns)
        for n in range(first, first + num_steps)
    ]


def slow(*steps: list[Row], **manifest: Any) -> list[Finding]:
    return SlowPathForWidth().check(
        trace_of(steps=[row for each in steps for row in each], **manifest)
    )


def test_a_path_that_another_one_beats_at_that_width_is_found() -> None:
    (found,) = slow(ran("grouped-gemm", 4, 140, 1), ran("per-token", 4, 88, 10))

    assert found.message == (
        "grouped-gemm took 140 ns at width 4 in 3 steps, where per-token takes 88 ns: 156 ns in all"
    )
    assert (found.step, found.ts_ns, found.count) == (1, 1_000, 3)


def test_a_wider_step_for_less_is_known_to_be_better() -> None:
    (found,) = slow(ran("grouped-gemm", 4, 140, 1), ran("per-token", 8, 100, 10))

    assert found.evidence["other width"] == 8


def test_narrower_steps_that_add_up_to_the_width_are_an_alternative() -> None:
    (found,) = slow(ran("grouped-gemm", 5, 140, 1), ran("per-token", 2, 30, 10))

    assert "3 steps of width 2 on per-token take 90 ns" in found.message


@looped(
    "others",
    [
        pytest.param(ran("per-token", 4, 120, 10), id="hardly cheaper"),
        pytest.param(ran("per-token", 4, 112, 10), id="cheaper by the least that counts"),
        pytest.param(ran("per-token", 2, 88, 10), id="not for as many rows"),
        pytest.param(ran("grouped-gemm", 8, 60, 10), id="the same path"),
        pytest.param(ran("per-token", 4, 88, 10, num_steps=2), id="hardly measured"),
    ],
)
def test_a_path_without_a_better_one_is_clean(others: list[Row]) -> None:
    assert slow(ran("grouped-gemm", 4, 140, 1), others) == []


def test_a_path_that_is_not_declared_for_decode_is_found() -> None:
    declared = {"declared_paths": {"prefill": ["grouped-gemm"], "decode": ["fused", "per-token"]}}

    (found,) = slow(
        ran("decode: grouped-gemm", 4, 140, 1), ran("decode: fused", 2, 70, 10), config=declared
    )

    assert found.message == (
        "decode: grouped-gemm took 140 ns at width 4 in 3 steps, "
        "and only fused or per-token is declared for decode"
    )


def test_steps_that_were_read_from_tags_have_no_path(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz")

    assert SlowPathForWidth(max_ratio=0.0, at_least=1).check(trace) == []


def test_the_path_of_prompts_is_slow_for_four_rows(record: Record) -> None:
    pytest.importorskip("torch")

    at_four = SlowPathForWidth().check(record("ep-multiplexing", "v2-grouped-gemm"))
    at_all = SlowPathForWidth().check(record("ep-multiplexing", "v2-grouped-gemm", stagger="6"))

    assert {each.rank for each in at_four} == {0, 1}
    assert "only fused or per-token is declared for decode" in at_four[0].message
    assert any("2 steps of width 1 on decode: per-token take" in each.message for each in at_all)
    assert SlowPathForWidth().check(record("ep-multiplexing", stagger="6")) == []


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert SlowPathForWidth().check(record(scenario)) == []


def test_rows_of_a_step_are_its_tokens_drafts_included() -> None:
    both = {"executed_path": "per-token", "num_decode_reqs": 2}
    verify = [
        decode(n, 2, **both, num_decode_tokens=8, ts_ns=1_000 * n, dur_ns=200) for n in (1, 2, 3)
    ]

    assert slow(verify, ran("fused", 2, 60, 10)) == []
    (found,) = slow(verify, ran("fused", 2, 30, 10))
    assert (found.evidence["width"], found.evidence["other steps"]) == (8, 4)


@looped("width", ["3", "4"])
def test_steps_that_verify_drafts_are_as_wide_as_their_rows(record: Record, width: str) -> None:
    pytest.importorskip("torch")
    trace = record("ep-multiplexing", verify_width=width, stagger="4")

    assert (
        trace.steps.filter(pl.col("num_decode_tokens") > pl.col("num_decode_reqs")).collect().height
    )
    assert SlowPathForWidth().check(trace) == []


def test_lines_that_stand_for_many_decodes_do_not_tell_how_long_one_of_them_takes() -> None:
    lines = {"inferred": "SGLang Decode batch lines"}
    steps = [row | lines for row in (*ran("graph", 4, 140, 1), *ran("eager", 4, 88, 10))]

    assert not SlowPathForWidth().applies(trace_of(steps=steps))
