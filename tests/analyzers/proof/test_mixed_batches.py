"""The proof on a paged engine: what each fault of mixed batches fires, and what none does."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.segments.split import Split
from stepscope.engine.executors.simulated import Simulated
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import RequestSpec, Workload
from tests.analyzers.conftest import Record
from tests.engine.rows import Rows
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


def served(
    fault: str | None = None, num_reqs: int = 16, max_tokens: int = 32, **sizes: Any
) -> CheckResult:
    """Check a run of equal requests, all there at once, of two steps' prompt each."""
    named = ("mixed", "reserve", "mtp_k")
    policy: dict[str, Any] = {"long_prefill_threshold": 224}
    policy |= {key: sizes.pop(key) for key in named if key in sizes}
    faults = frozenset({fault} if fault else set())
    config = EngineConfig(
        **{"num_kv_blocks": 4096, "max_num_batched_tokens": 256, "max_num_seqs": 64} | sizes,
        faults=faults,
    )
    scheduler = Paged(**policy, faults=faults)
    asked = Workload(RequestSpec(f"r{i}", 0, 512, max_tokens, prefix=(7,)) for i in range(num_reqs))
    rows = Rows()
    executor = Simulated(split=Split(faults))
    Engine(config, asked, scheduler, executor, VirtualClock(), rows.recorder).run()
    engine = config.as_dict() | {"refuses_mixed_drafts": True}
    told: dict[str, Any] = {"config": {"engine": engine}, **rows.tables}
    return check(trace_of(**told))


def loud(result: CheckResult) -> set[str]:
    """The codes of errors and warnings."""
    return {each.code for each in result.findings if each.severity is not Severity.INFO}


@slow
@looped(
    "sizes",
    [
        pytest.param({}, id="mixed with a reserve"),
        pytest.param({"num_kv_blocks": 300}, id="preemptions for blocks"),
        pytest.param({"deferred_output": True}, id="deferred output"),
        pytest.param({"prefix_cache": True}, id="prefix cache"),
        pytest.param({"num_reqs": 2, "mixed": False, "reserve": False, "mtp_k": 2}, id="drafts"),
    ],
)
def test_a_sound_engine_is_clean_under_every_rule(sizes: dict[str, Any]) -> None:
    assert loud(served(**sizes)) == set()


@slow
def test_without_a_reserve_mixed_batches_do_not_form_and_decodes_stall() -> None:
    result = served(reserve=False)

    assert loud(result) == {"BAT001", "STV004", "STV011"}
    (stall,) = (each for each in result.findings if each.code == "STV004")
    assert "prefill steps took" in stall.message


@slow
@looped(
    ("fault", "sizes", "fired"),
    [
        ("prefill-eats-the-budget", {}, {"BAT001", "STV004", "STV011"}),
        ("no-request-cap", {"reserve": False}, {"BAT001", "BAT002", "STV004", "STV011"}),
        ("reserve-for-max-num-seqs", {"max_num_seqs": 256}, {"STV005", "BAT015"}),
        # A chunk that samples has a row of logits for it, so that one differs as well.
        ("token-of-partial-prefill", {}, {"BAT005", "BAT006"}),
        ("scheduled-twice", {}, {"BAT004"}),
        ("victim-in-batch", {"num_kv_blocks": 420, "max_tokens": 64}, {"BAT004"}),
        ("mtp-with-mixed", {"mtp_k": 1}, {"BAT010"}),
        ("lengths-not-rebased", {}, {"BAT007"}),
        ("input-ids-not-sliced", {}, {"BAT008"}),
        ("slot-mapping-missing", {}, {"BAT009"}),
        ("lengths-missing", {}, {"BAT009"}),
        ("mixed-taken-for-prefill", {}, {"BAT006", "BAT010", "STV004"}),
        ("logits-per-token", {}, {"BAT006"}),
        ("logits-per-batch", {}, {"BAT006"}),
    ],
)
def test_a_fault_fires_its_rules_and_no_others(
    fault: str, sizes: dict[str, Any], fired: set[str]
) -> None:
    result = served(fault, **sizes)

    # Races between streams are other rules'.
    assert {code for code in loud(result) if code[:3] in {"BAT", "STV", "KVB"}} == fired


@slow
@looped(
    ("variant", "fired"),
    [
        ("before", {"BAT001", "STV004", "STV011"}), ("after", set()), ("deferred", set()),
        ("decode-first", set()),
        ("no-threshold", set()), ("data-parallel", set()),
    ],
)  # fmt: skip
def test_the_reports_scenario_fires_before_the_repair_only(
    record: Record, variant: str, fired: set[str]
) -> None:
    assert loud(check(record("mixed-batches", variant, requests="48", max_tokens="64"))) == fired
