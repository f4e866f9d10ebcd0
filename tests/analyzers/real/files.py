"""The real files that rules are tried on, and why no real file says anything to the other rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from stepscope.analyzers.views.batches import SAMPLED
from stepscope.analyzers.views.declared import is_one_run
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.loads import loads
from stepscope.ingest.trace import Trace

SWIMLANES = (
    "TestBenchmarkBgemm_Case1",
    "TestMixedExample_case1",
    "TestPredicatedDispatch_PredicateFalseSkips",
    "TestQwen2L_StressBatch16Seq3500",
    "TestSpmdStarvation_Case1",
    "TestSpmdSyncStartMixSpill_Case1",
)
PROFILES = (
    "h100_qwen15_05b_chat",
    "hta_event_sync_trace",
    "hta_nccl_data",
    "hta_sampled_rank-0",
    "hta_sampled_rank-1",
    "sglang_qwen3_8b_prefilldecode",
    "vllm_cpu_tiny_llama_preemptions",
    "vllm_prefilldecode_mi300",
)
LOGS = (
    "formats",
    "livebug_mix_shift_24clusters_1sched",
    "mixed_example_debug_dispatch",
    "scope_deadlock_code1",
    "sglang_retract",
    "stall_S1_qwen2l",
)
FILES = (
    *(f"swimlane/{name}" for name in SWIMLANES),
    *(f"kineto/{name}.json.gz" for name in PROFILES),
    *(f"logs/{name}.log" for name in LOGS),
    "requests/azure_conv.csv",
    "requests/mooncake_conversation_trace.jsonl",
)
"""All that `../shared/data` holds; two ranks of HTA are tried together as well."""
QUICK = (
    "swimlane/TestMixedExample_case1",
    "kineto/hta_sampled_rank-0.json.gz",
    "logs/stall_S1_qwen2l.log",
    "logs/sglang_retract.log",
)
"""One or two of each kind, that are small and say much."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What a rule needs that no real file has, and how to see that a trace has it."""

    what: str
    has_it: Callable[[Trace], bool]


def _needs(*needs: str) -> Lack:
    """A table, or columns that have to have a value in one file."""
    return Lack(" and ".join(needs), lambda trace: knows(trace, *needs))


def _rows(what: str, table: str, only: pl.Expr) -> Lack:
    return Lack(what, lambda trace: not trace.table(table).filter(only).collect().is_empty())


def _declares(*names: str) -> Lack:
    declared = "what the manifest's config declares as " + ".".join(names)
    return Lack(declared, lambda trace: _found(trace.manifest.config, names))


def _found(config: object, names: tuple[str, ...]) -> bool:
    for name in names:
        config = config.get(name) if isinstance(config, dict) else None
    return config is not None


_PENDING_SLOTS = Lack(
    "slots of cores in a file whose times are measured: the runtime's logs have slots and an order",
    lambda trace: knows(trace, "core_spans.slot") and trace.manifest.is_measured("core_spans"),
)
_HISTORIES = _rows(
    "events of requests other than arrivals: lists of requests have these, and a log that tells of "
    "retractions does not say of which requests",
    "lifecycle",
    pl.col("request").is_not_null() & (pl.col("event") != "arrive"),
)
_ABOUT_REQUESTS = _rows(
    "decisions about requests: those of the runtime's logs are about tasks",
    "decisions",
    pl.col("subject_kind") == "request",
)
_ABOUT_BUCKETS = _rows("choices of buckets", "decisions", pl.col("subject_kind") == "bucket")
_RECORDED_COLLECTIVES = _rows(
    "collectives that were recorded: one inferred from a profile may be cut off",
    "collectives",
    pl.col("inferred").is_null(),
)
_OF_RANKS = Lack(
    "loads of several ranks of one engine",
    lambda trace: (
        is_one_run(trace) and loads(trace).select(pl.col("rank").n_unique()).collect().item() > 1
    ),
)
_VERSIONS = _rows("protocol versions", "counters", pl.col("name") == "protocol version")
_PATHS_OF_KINDS = Lack(
    "paths that name prefill, decode or mixed, or segments",
    lambda trace: (
        trace.has("segments")
        or not trace.steps.filter(pl.col("executed_path").str.contains("prefill|decode|mixed"))
        .collect()
        .is_empty()
    ),
)

_BATCHES = _rows(
    "requests in more than one batch: llama.cpp's log tells of the first batch of a prompt alone",
    "batch_rows",
    pl.len().over("rank", "request") > 1,
)
_IS_TOLD = ~pl.col("inferred").is_in(SAMPLED).fill_null(value=False)
LACKS: dict[str, Lack] = {
    "COR005": _PENDING_SLOTS,
    "COR008": _needs("tasks.is_sync_start"),
    "STV001": _HISTORIES,
    "STV002": _HISTORIES,
    "STV003": _ABOUT_BUCKETS,
    "STV018": _ABOUT_BUCKETS,
    "STV004": _needs("outputs"),
    "STV005": _needs("steps.reserved_tokens"),
    "STV006": _BATCHES,
    "STV008": _ABOUT_REQUESTS,
    "STV009": _needs("steps.kv_blocks_free"),
    "STV010": _needs("steps.kv_blocks_free"),
    "STV011": _rows(
        "running requests of every step: SGLang's log leaves most decodes out",
        "steps",
        _IS_TOLD & (pl.col("num_running") > 0),
    ),
    "STV012": _HISTORIES,
    "STV014": _ABOUT_REQUESTS,
    "STV015": _HISTORIES,
    "STV017": _rows(
        "queues between servers that prefill and decode",
        "counters",
        pl.col("name").is_in(["#inflight-req", "#transfer-req", "#prealloc-req"]),
    ),
    "STV020": _rows("when what requests waited for came", "lifecycle", pl.col("event") == "ready"),
    "BAT001": _needs("steps.token_budget"),
    "BAT002": _BATCHES,
    "BAT003": _needs("steps.token_budget"),
    "BAT005": _needs("outputs"),
    "BAT006": _needs("steps.logits_rows"),
    "BAT007": _needs("segments"),
    "BAT008": _needs("segments"),
    "BAT009": _needs("segments"),
    "BAT010": _PATHS_OF_KINDS,
    "BAT011": _rows(
        "paths of every step: SGLang's log leaves most decodes out",
        "steps",
        _IS_TOLD & pl.col("executed_path").is_not_null() & pl.col("num_decode_reqs").is_not_null(),
    ),
    "BAT012": _declares("declared_paths"),
    "BAT013": _needs("outputs"),
    "BAT014": _rows("how many drafts were accepted", "counters", pl.col("name") == "Drafted"),
    "STV024": _needs("lifecycle.priority"),
    "STV025": _HISTORIES,
    "STV026": _needs("lifecycle.request", "batch_rows.request"),
    "KVB001": _needs("allocations"),
    "KVB002": _needs("allocations"),
    "KVB003": _ABOUT_REQUESTS,
    "KVB004": _BATCHES,
    "KVB010": _BATCHES,
    "BAT015": _needs("steps.reserved_tokens"),
    "KVB005": _needs("accesses"),
    "KVB006": _needs("accesses"),
    "KVB007": _HISTORIES,
    "KVB008": _ABOUT_REQUESTS,
    "COR013": _needs("accesses"),
    "BUF001": _needs("accesses"),
    "BUF002": _needs("accesses"),
    "BUF003": _needs("accesses"),
    "BUF004": _needs("accesses"),
    "BUF005": _needs("accesses"),
    "BUF006": _needs("accesses"),
    "COL002": _RECORDED_COLLECTIVES,
    "COL003": _needs("allocations"),
    "COL004": _needs("allocations"),
    "COL005": _declares("parallel", "codebook"),
    "COL006": _VERSIONS,
    "COL009": _BATCHES,
    "COL010": _OF_RANKS,
    "EQV001": _needs("outputs"),
    "EQV002": _needs("outputs"),
    "EQV003": _needs("outputs"),
    "EQV004": _needs("outputs"),
    "TRC006": _HISTORIES,
}
"""Rules that no real file at hand says anything to, and what these files lack."""
