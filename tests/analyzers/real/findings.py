"""What `check` says of every real file, and where each finding is counted again from raw data.

`python -m tests.analyzers.real.findings` prints the table. FOUND is all that may be found; COUNTED
has, for every rule that found something, the test that counts it without readers and Polars.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.ingest.trace import Trace
from tests.analyzers.real import (
    test_logs,
    test_profiles,
    test_runtime_logs,
    test_swimlanes,
)
from tests.analyzers.real.files import FILES
from tests.conftest import ROOT

SHARED = ROOT.parent / "shared" / "data"

FOUND: dict[str, dict[str, int]] = {
    "swimlane/TestBenchmarkBgemm_Case1": {"COR009": 1, "TRC003": 2},
    "swimlane/TestMixedExample_case1": {"COR001": 2, "COR003": 6, "COR009": 1, "TRC003": 2},
    "swimlane/TestPredicatedDispatch_PredicateFalseSkips": {"COR006": 1, "COR009": 1, "TRC003": 2},
    "swimlane/TestQwen2L_StressBatch16Seq3500": {"COR001": 15, "TRC003": 2},
    "swimlane/TestSpmdStarvation_Case1": {"COR006": 1, "COR009": 1, "TRC003": 2},
    "swimlane/TestSpmdSyncStartMixSpill_Case1": {"COR009": 2, "TRC003": 2},
    "kineto/h100_qwen15_05b_chat.json.gz": {"TRC003": 1},
    "kineto/hta_event_sync_trace.json.gz": {},
    "kineto/hta_nccl_data.json.gz": {"TRC003": 4},
    "kineto/hta_sampled_rank-0.json.gz": {"TRC003": 3},
    "kineto/hta_sampled_rank-1.json.gz": {"TRC003": 3},
    "kineto/sglang_qwen3_8b_prefilldecode.json.gz": {"TRC003": 1},
    "kineto/vllm_cpu_tiny_llama_preemptions.json.gz": {"TRC003": 133, "TRC005": 4},
    "kineto/vllm_prefilldecode_mi300.json.gz": {"TRC003": 1},
    "logs/formats.log": {"TRC003": 10},
    "logs/livebug_mix_shift_24clusters_1sched.log": {"COR010": 1, "COR011": 1, "TRC003": 1},
    "logs/mixed_example_debug_dispatch.log": {"TRC003": 2},
    "logs/scope_deadlock_code1.log": {"COR010": 1, "TRC003": 2},
    "logs/sglang_retract.log": {"KVB009": 1, "TRC003": 7},
    "logs/stall_S1_qwen2l.log": {"COR001": 8, "COR010": 1, "TRC003": 2},
    "requests/azure_conv.csv": {},
    "requests/mooncake_conversation_trace.jsonl": {},
}
"""By file and rule, how often it is found."""

COUNTED: dict[tuple[str, str], Callable[..., None]] = {
    ("swimlane", "COR001"): test_swimlanes
    .test_cor001_finds_the_mixes_of_which_a_part_found_its_core_held,
    ("swimlane", "COR003"): test_swimlanes
    .test_cor003_finds_the_mixes_whose_parts_start_apart,
    ("swimlane", "COR006"): test_swimlanes
    .test_cor006_adds_up_what_idle_cores_lost_with_work_ready,
    ("swimlane", "COR009"): test_swimlanes
    .test_cor009_adds_up_what_dispatching_cost_beside_running,
    ("kineto", "TRC003"): test_profiles
    .test_trc003_counts_the_steps_that_were_read_from_tags,
    ("kineto", "TRC005"): test_profiles
    .test_trc005_finds_the_four_steps_that_recompute_what_was_preempted,
    ("logs", "COR001"): test_runtime_logs
    .test_cor001_finds_the_blocks_of_which_one_part_is_pending_and_the_others_run,
    ("logs", "COR010"): test_runtime_logs
    .test_cor010_tells_the_stall_that_the_runtime_gave_up_on,
    ("logs", "COR011"): test_runtime_logs
    .test_cor011_finds_the_aic_part_on_the_core_that_the_report_calls_an_aiv,
    ("logs", "KVB009"): test_logs.test_kvb009_finds_the_retractions_line_by_line,
}  # fmt: skip
"""By kind of file and rule, the test that counts its findings again."""


def said(file: Path) -> CheckResult:
    """What all rules say of a file."""
    return check(Trace.open(file))


def counts(result: CheckResult) -> dict[str, int]:
    """How often each rule that found something found it."""
    return {code: num for code, num in result.counts.items() if num}


def row(name: str, result: CheckResult) -> str:
    """A line of the table: the file, how many rules judged it, and what was found how often."""
    judged = f"{len(result.counts)} of {len(result.counts) + len(result.not_applicable)}"
    severities = {each.code: each.severity for each in result.findings}
    found = Counter(counts(result))
    told = ", ".join(f"{code} ({severities[code]}) {found[code]:,}" for code in sorted(found))
    return f"| {name} | {judged} | {told or 'nothing'} |"


def main() -> int:
    """Print the table."""
    if not SHARED.is_dir():
        print("there are no real files here")
        return 0
    print("| file | rules that judged | found |\n|---|---|---|")
    for name in FILES:
        print(row(name, said(SHARED / name)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
