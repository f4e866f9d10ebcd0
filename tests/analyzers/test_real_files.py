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
    assert all(each.severity is Severity.INFO for each in result.findings)


def test_steps_read_from_tags_are_said_to_be_inferred(shared_data: Path) -> None:
    file = shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz"

    result = check(Trace.open(file))

    assert result.counts["TRC003"] >= 133
    assert any(each.evidence.get("steps") == 133 for each in result.findings)
