"""`stepscope info`: what is in a trace, and what could not be had from its source."""

from __future__ import annotations

import json
from pathlib import Path

from tests.app.cli.conftest import Command


def test_info_shows_tables_with_rows_and_steps_by_kind(stepscope: Command, starved: Path) -> None:
    run = stepscope("info", starved)

    assert "fcfs-preemption / before" in run.out
    assert "batch_rows" in run.out
    assert "decode" in run.out


def test_info_for_programs_counts_the_same_rows(stepscope: Command, starved: Path) -> None:
    facts = json.loads(stepscope("info", starved, "--format", "json").out)

    assert facts["closed"] is True
    assert facts["tables"]["steps"]["rows"] == sum(facts["steps"].values())


def test_the_vllm_cpu_trace_has_its_133_steps(stepscope: Command, shared_data: Path) -> None:
    path = shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz"

    facts = json.loads(stepscope("info", path, "--format", "json").out)

    assert facts["steps"] == {"prefill": 1, "decode": 103, "mixed": 29}


def test_the_gpu_traces_show_their_engine_step_with_rows_and_tokens(
    stepscope: Command, shared_data: Path
) -> None:
    sglang = stepscope("info", shared_data / "kineto" / "sglang_qwen3_8b_prefilldecode.json.gz")
    vllm = stepscope("info", shared_data / "kineto" / "vllm_prefilldecode_mi300.json.gz")

    assert step_row(sglang.out, "prefill") == ["1", "15", "15,360", "0", "0"]
    assert step_row(vllm.out, "mixed") == ["1", "9", "8,155", "37", "37"]


def step_row(text: str, kind: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{kind} ")]
    return line.split()[1:6]
