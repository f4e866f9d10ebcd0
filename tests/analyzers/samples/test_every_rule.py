"""Which rules are tried on a recording that every clone has."""

from __future__ import annotations

from tests.analyzers.real import test_logs as real_logs
from tests.analyzers.real import test_profiles as real_profiles
from tests.analyzers.real import test_swimlanes
from tests.analyzers.samples import (
    test_batches,
    test_blocks,
    test_logs,
    test_profiles,
    test_requests,
    test_sglang,
    test_times,
)
from tests.analyzers.samples.conftest import Sample
from tests.tiers import slow

OURS = (
    test_batches,
    test_blocks,
    test_logs,
    test_profiles,
    test_requests,
    test_sglang,
    test_times,
    test_swimlanes,
)
"""Modules that count again what rules say of our recordings; swimlanes of the engine among them."""


@slow
def test_every_rule_that_judges_a_real_file_is_tried_on_a_recording_of_ours(
    of_vllm: list[Sample], sglang: Sample
) -> None:
    tried = {code for module in OURS for code in module.TRIED}
    elsewhere = real_logs.TRIED | real_profiles.TRIED
    judged = {code for sample in (*of_vllm, sglang) for code in sample.checked.counts}

    assert (elsewhere | judged) - tried == set()
