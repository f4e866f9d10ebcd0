"""Rules on files that other people's programs wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.finding import Severity
from stepscope.analyzers.registry import RULES
from stepscope.analyzers.run import check
from stepscope.ingest.trace import Trace

CORES = [rule.code for rule in RULES if rule.code.startswith("COR")]


@pytest.mark.parametrize(
    "name",
    ["vllm_cpu_tiny_llama_preemptions", "vllm_prefilldecode_mi300", "hta_sampled_rank-0"],
)
def test_rules_of_core_groups_are_not_applicable_to_a_profile(shared_data: Path, name: str) -> None:
    trace = Trace.open(shared_data / "kineto" / f"{name}.json.gz")

    result = check(trace)

    assert set(CORES) <= set(result.not_applicable)
    loud = {each.code for each in result.findings if each.severity is not Severity.INFO}
    assert loud <= {"TRC005"}


def test_steps_read_from_tags_are_said_to_be_inferred(shared_data: Path) -> None:
    file = shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz"

    result = check(Trace.open(file))

    assert result.counts["TRC003"] >= 133
    assert any(each.evidence.get("steps") == 133 for each in result.findings)


def test_parts_of_a_real_mix_start_up_to_33_ms_apart(shared_data: Path) -> None:
    result = check(Trace.open(shared_data / "swimlane" / "TestMixedExample_case1"))

    skewed = [each for each in result.findings if each.code == "COR003"]
    assert sum(each.count for each in skewed) == 6
    assert max(int(each.evidence["worst_skew_ns"] or 0) for each in skewed) // 1_000_000 == 32


def test_a_model_of_two_layers_runs_under_every_rule_of_core_groups(shared_data: Path) -> None:
    result = check(Trace.open(shared_data / "swimlane" / "TestQwen2L_StressBatch16Seq3500"))

    assert set(CORES) - set(result.counts) == {"COR005", "COR008"}
    assert {code for code in CORES if result.counts.get(code)} == {"COR001"}
