"""What `mixed-batches` is built from: its variants, settings and workloads, and what they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.executors.segments.split import BACKENDS, Split
from stepscope.engine.executors.segments.staging import CopyQueue
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.requests.content import SEGMENT_TOKENS
from stepscope.engine.runs.scenario import Setting
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.workloads.workload import Workload, closed_loop, identical, sharing
from stepscope.ingest.errors import ConfigError

# DeepSeek-R1, 8 x MI300X, TP 8, half of the peak: 671 GB / 42.4 TB/s; 74 GFLOP / 10.5 PFLOP/s; the
# host's work as of an NVIDIA L4's; 61 layers x 576 B, which every card reads in full, / 5.3 TB/s.
# A second body reads the projections of attention again, 61 layers x 187 MB / 42.4 TB/s; the host
# waits for three fields of a step's 2,048 tokens, 49 KB at 12 GB/s.
COST = CostModel(
    base_ns=15_800_000, prefill_token_ns=7_070, decode_row_ns=8_600, kv_token_ns=7,
    body_ns=269_000, sync_ns=4_100,
)  # fmt: skip
RANKS = 2


@dataclass(frozen=True, slots=True)
class Variant:
    """What a variant switches on."""

    mixed: bool = True
    reserve: bool = True
    decodes_first: bool = False
    threshold: bool = True
    deferred: bool = False
    mtp: bool = False
    num_ranks: int = 1


VARIANTS = {
    "before": Variant(reserve=False),
    "after": Variant(),
    "decode-first": Variant(reserve=False, decodes_first=True),
    "flag-off": Variant(mixed=False),
    "flag-off-deferred": Variant(mixed=False, deferred=True),
    "deferred": Variant(deferred=True),
    "no-threshold": Variant(threshold=False),
    "mtp": Variant(mixed=False, mtp=True),
    "data-parallel": Variant(num_ranks=RANKS),
}
# Clients, what each of them sends one after the other, prompt and completion tokens.
WORKLOADS = {
    "report": (256, 1, 4096, 512),
    "concurrent-2048": (2048, 1, 8192, 1024),
    "v4": (512, 1, 8192, 1024),
    "closed-loop": (256, 4, 4096, 512),
}
# What a decoder on a CPU computes in a second: the same shape, with the sizes in proportion.
SMALL = {
    "requests": "12", "prompt_len": "64", "max_tokens": "8", "budget": "32", "threshold": "28",
    "max_num_seqs": "8", "block_size": "4", "kv_blocks": "0", "turnaround_ns": "60",
}  # fmt: skip
RATIOS = ("4", "128", "4+128", "0+4+128")  # of DeepSeek-V4: CSA, HCA, both, and dense layers
AS_VARIANT, AS_WORKLOAD = "as-variant", 0


def settings() -> dict[str, Setting]:
    """Return what can be set, with what it is otherwise."""
    return {
        "workload": Setting("report", "which requests", tuple(WORKLOADS)),
        "requests": Setting(AS_WORKLOAD, "clients; 0: as the workload says", at_least=0),
        "prompt_len": Setting(AS_WORKLOAD, "prompt tokens; 0: as the workload says", at_least=0),
        "max_tokens": Setting(AS_WORKLOAD, "completion tokens; 0: as it says", at_least=0),
        "shared_prefix": Setting(0, "prompt tokens that all have in common", at_least=0),
        "budget": Setting(2048, "most tokens of a step", at_least=1),
        "threshold": Setting(1792, "most tokens of one prompt in a step", at_least=1),
        "max_num_seqs": Setting(256, "most requests that run at a time", at_least=1),
        "block_size": Setting(16, "tokens of a KV block", at_least=1),
        "kv_blocks": Setting(0, "blocks of the KV pool; 0: enough for max_num_seqs", at_least=0),
        "prefix_cache": Setting(False, "whether prompts that begin alike share KV"),
        "deferred": Setting(
            AS_VARIANT, "whether tokens are known a step late", (AS_VARIANT, "true", "false")
        ),
        "backend": Setting(
            "v4",
            "attention: v4 runs projections once a segment, mla once, mha takes no mixed",
            tuple(BACKENDS),
        ),
        "tbo": Setting(False, "whether batches of one phase run as two halves that overlap"),
        "mtp_k": Setting(0, "tokens drafted for each decode; 0: as the variant", at_least=0),
        "acceptance": Setting(0.7, "share of drafts that are right", at_least=0),
        "turnaround_ns": Setting(
            2500, "from asking for a segment's copies to writing its buffers again", at_least=0
        ),
        "layers": Setting(2, "with torch: layers of the decoder", at_least=1),
        "experts": Setting(0, "with torch: experts of each layer; 0: a dense MLP", at_least=0),
        "window": Setting(0, "tokens seen one by one, all others in blocks; 0: all", at_least=0),
        "ratios": Setting(
            "4", "with a window: tokens of a block, by layers in turn; 0: a dense layer", RATIOS
        ),
        "attention_chunk": Setting(
            16, "with torch: tokens of history attended to at a time", at_least=1
        ),
    }


def model_config(values: Mapping[str, Any], seed: int) -> ModelConfig:
    """Return the sizes of the decoder that runs with torch."""
    return ModelConfig(
        num_layers=values["layers"],
        num_experts=values["experts"],
        window=values["window"],
        ratios=tuple(map(int, values["ratios"].split("+"))),
        chunk_tokens=values["attention_chunk"],
        seed=seed,
    )


def workload_of(values: Mapping[str, Any]) -> Workload:
    """Return the requests of the chosen workload."""
    clients, turns, prompt_len, max_tokens = WORKLOADS[values["workload"]]
    lengths = values["prompt_len"] or prompt_len, values["max_tokens"] or max_tokens
    clients = values["requests"] or clients
    asked = closed_loop(clients, turns, *lengths) if turns > 1 else identical(clients, *lengths)
    return sharing(asked, range(values["shared_prefix"] // SEGMENT_TOKENS))


def shares_of(
    asked: Workload, num_ranks: int, executor: str, faults: frozenset[str]
) -> Sequence[Workload]:
    """Deal the requests to the ranks; ConfigError where they cannot be dealt."""
    if num_ranks == 1:
        return (asked,)
    if not executor_kind(executor).is_priced:
        raise ConfigError(
            "data-parallel runs on costs alone", todo=f"leave --executor {executor} out"
        )
    if any(spec.after for spec in asked.specs):
        raise ConfigError("clients who wait for answers cannot be dealt to several ranks")
    if "dealt-to-one-rank" in faults:
        return Workload(asked.specs[:-1]), Workload(asked.specs[-1:])
    first, second = asked.specs[::2], asked.specs[1:-1:2]
    return Workload((*first, *asked.specs[1 + 2 * len(second) :: 2])), Workload(second)


def engine_config(
    variant: Variant, values: Mapping[str, Any], asked: Workload, faults: frozenset[str]
) -> EngineConfig:
    """Return the engine's sizes, the pool large enough for all who run unless it is set."""
    deferred = values["deferred"]
    is_deferred = variant.deferred if deferred == AS_VARIANT else deferred == "true"
    size = values["block_size"]
    longest = max(spec.prompt_len + spec.max_tokens for spec in asked.specs)
    return EngineConfig(
        num_kv_blocks=values["kv_blocks"] or values["max_num_seqs"] * -(-longest // size),
        block_size=size,
        max_num_batched_tokens=values["budget"],
        max_num_seqs=values["max_num_seqs"],
        deferred_output=is_deferred,
        prefix_cache=values["prefix_cache"],
        faults=faults,
    )


def scheduler_of(variant: Variant, values: Mapping[str, Any], config: EngineConfig) -> Paged:
    """Return the scheduler of a variant; ConfigError where it refuses what is set."""
    mtp_k = values["mtp_k"] or int(variant.mtp)
    if mtp_k and config.deferred_output:
        raise ConfigError("MTP does not work with deferred output", todo="switch one of them off")
    return Paged(
        mixed=variant.mixed,
        reserve=variant.reserve,
        decodes_first=variant.decodes_first,
        long_prefill_threshold=values["threshold"] if variant.threshold else 0,
        mtp_k=mtp_k,
        faults=config.faults,
    )


def priced(
    cost: CostModel, config: EngineConfig, values: Mapping[str, Any], seed: int
) -> Simulated:
    """Return what runs batches at `cost`, split as the backend has it."""
    split = Split(
        config.faults,
        CopyQueue(turnaround_ns=values["turnaround_ns"]),
        values["backend"],
        overlaps=values["tbo"],
        ratios=model_config(values, seed).pooled_ratios,
    )
    return Simulated(cost, split, config.deferred_output, values["acceptance"], seed)
