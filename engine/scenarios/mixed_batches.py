"""`mixed-batches`: prompts and decodes in one batch, and who gets the tokens of its budget.

## What happened
An engine learned to put chunks of prompts and decodes into one batch, so that nobody's output has
to stand still while others' prompts are computed. It was switched on, and almost no batch was
mixed: of about a thousand steps 494 were prefill, 2 mixed, 500 decode. Prompts were scheduled
first, and what one of them left of the budget of 2,048 tokens the next one took. The first request
had its first token after three steps, and its second when the last prompt of all was done, 145.7 s
later.

The repair reserves the decodes' tokens before prompts get any,
`reserve = min(min(decodes, seats) x (drafts + 1), budget)`, and prompts have the rest. Rows are
still laid out `[prefill | decode]`; with the feature off nothing is reserved and nothing is mixed.
Then 3 steps were prefill and all others mixed, such as 2 prompts + 114 decodes = 1,934 + 114
tokens, and the longest gap between two tokens fell to 1.29 s. The 99th percentile of the gaps does
not tell the two apart: of 130,816 gaps some 250 were long, one for nearly every request.

## The workload
`report`: 256 requests, all there from the start, 4,096 prompt and 512 completion tokens each;
budget 2,048, no prompt over 1,792 in a step, 256 seats, KV for all of them. `concurrent-2048`:
2,048 requests of 8,192 and 1,024 tokens; `v4`: 512 of them; `closed-loop`: 256 clients who send
four requests each, the next when the last is answered, as load generators do. Times are a roofline
of DeepSeek-R1 in FP8 on eight MI300X (5.3 TB/s and 2.6 dense FP8 PFLOP/s each): shapes and ratios
are the report's, milliseconds are not; its own steps took ten times as long.

## The variants
- `before`: mixed batches and no reserve; `after`: with it.
- `flag-off`: no mixed batches; decodes run when no prompt can.
- `flag-off-deferred`, `deferred`: the same as `flag-off` and `after`, and the host learns tokens a
  step late and works while the device does. Mixing had to give that up at first.
- `no-threshold`: `after`, and a prompt may take all that decodes leave.
- `mtp`: `flag-off`, and one token more is drafted for each decode (`--set mtp_k=3`), of which
  `acceptance` are right. With mixed batches it is refused.
- `data-parallel`: `after` on two ranks, to which requests are dealt in turn, the last two to the
  first. A rank must run what the other runs: each foretells its kind, and one that has nothing of
  it runs a dummy.

## How it is recorded
- `steps`: `reserved_tokens` of `token_budget`. A `dummy` tells by its path of which kind it was,
  `simulated-dummy-prefill` or `simulated-dummy-decode`.
- `segments`: a mixed batch runs as two, each with lengths of its own.
- `batch_rows`: `num_cached` tokens were found in the prefix cache (`--set prefix_cache=true`, with
  prompts that begin alike, `--set shared_prefix=2048`), in blocks that `allocations` say are
  shared. `num_draft` tokens were drafted; how many were accepted is known when the step has run:
  one less than its `outputs`. The counter `accepted` of `drafts` has their sum.
- `outputs`, with output deferred: a placeholder in the step that samples a token, and the token a
  step later, `source_step` telling the first. The row that runs before an end is known has none.
- `accesses` of `input_ids`, with output deferred: which token a decode read, by the step that
  sampled it (`epoch`), 0 for a placeholder; from `device` what the step before sampled, from `host`
  what was known when the batch was formed.

## What to look for
- `before`: BAT001 decodes are left out; STV004 the worst gap of each request and the steps in it.
- `flag-off`, `mtp`: STV011 once, as a warning: decodes wait for every prompt, as they were told to.
- `--fault NAME` switches on a bug of such a scheduler:
  `prefill-eats-the-budget`: `after` becomes `before`;
  `no-request-cap` (of `before`): one chunk is the whole budget (BAT002);
  `reserve-for-every-seat`: `reserved_tokens` is the whole budget, with prompts waiting (STV005);
  `reserve-not-held`: prompts take more than `token_budget` less `reserved_tokens` (BAT003);
  `placeholder-read-as-token` (of `before`, deferred): a decode that idled reads epoch 0 (EQV002);
  `token-of-partial-prefill`: `outputs` of chunks that are not final (BAT005);
  `scheduled-twice`: a prompt's last chunk and a decode of it in one batch (BAT004);
  `victim-in-batch`: a `preempt` of somebody who has a row in that step (BAT004);
  `mtp-with-mixed`: drafts in mixed batches, path `simulated-mixed+mtp` (BAT010);
  `peer-kind-from-queue` (of `data-parallel`): one rank runs a prefill, the other a decode (COL009);
  `dealt-to-one-rank` (of `data-parallel`): one rank has nearly all requests (COL010).
- or of how a mixed batch is split, each in `segments`, `steps` or `accesses` of mixed steps:
  `lengths-not-rebased`: the decode segment's `first_cu_len` is not 0 (BAT007);
  `input-ids-not-sliced`: its `input_ids_len` is that of the whole batch (BAT008);
  `slot-mapping-missing`: its `slot_mapping_len` is null (BAT009);
  `mixed-taken-for-prefill`: one segment, and the path of a prefill (BAT010);
  `logits-per-token`, `logits-per-batch`: `logits_rows` are not those of the sequences (BAT006);
  `decode-overwrites-shared-view`: segment 0 reads an epoch that was written for segment 1 (BUF002);
  `pinned-buffer-overwritten`: the host writes `pinned` fields and has not waited for the copies
  (BUF001); what arrives is wrong behind long chunks alone, `--set budget=1024` hides it.

## On a real decoder
`--executor torch` computes the same on a small decoder with weights of `--seed`, in real time, at
sizes in proportion: 12 requests of 64 and 8 tokens, budget 32, no prompt over 28 in a step. Every
output is compared with that of its request alone, and `equal_to_solo` is 12/12 in every variant but
`data-parallel`, which runs on costs alone. Drafts are looked up in what the request has said. In
`outputs`, `digest` and `solo_digest` differ from the first wrong token on (EQV001, EQV003).

The faults of the split do what they would: metadata that do not fit stop the first mixed step with
one line, the others change tokens, and `mixed-taken-for-prefill` changes nothing but the path.
`pinned-buffer-overwritten` is hidden with `--set budget=16`. Two faults are of the attention alone:
`empty-merge-nan`: a prompt that begins beside one that goes on gets NaN (EQV004);
`history-seen-by-chunk-end` (with `--set window=8`): what a prompt says depends on its chunks.

## The table
Steps by kind and the first mixed one; the longest gap between two tokens, the 99th percentile of
all gaps, the median request's longest gap and the requests with one over a second; the median time
to the first token; tokens a second; the end of the run. `before` has 511 prefill, 2 mixed and 511
decode steps, `after` 3, 544 and 511; the longest gap falls from 15.4 s to 38 ms, and the 99th
percentile rises from 26 to 38. In `closed-loop` the time to the first token falls as well: whoever
comes back finds few prompts before its own.

## References
ATOM pull request 1271. vLLM's `long_prefill_token_threshold`, and its `disable_chunked_mm_input`,
after which prompts with images are not split here. DeepSeek-V3 technical report (671B parameters,
37B a token, 61 layers, 512 + 64 latent values a token); AMD MI300X data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.content import SEGMENT_TOKENS
from stepscope.engine.data_parallel import LockStep
from stepscope.engine.engine import Engine
from stepscope.engine.executors.runs import TORCH, run_for
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.executors.split import Split
from stepscope.engine.executors.staging import CopyQueue
from stepscope.engine.metrics import kind_metrics, serving_metrics, token_metrics
from stepscope.engine.model.config import ModelConfig
from stepscope.engine.scenario import (
    DEFAULTS,
    Options,
    RunResult,
    Setting,
    executor_of,
    recorder_for,
    settled,
)
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.workload import Workload, closed_loop, identical, sharing
from stepscope.ingest.errors import ConfigError

# DeepSeek-R1, 8 x MI300X, TP 8, half of the peak: 671 GB / 42.4 TB/s; 74 GFLOP / 10.5 PFLOP/s; the
# host's work as of an NVIDIA L4's; 61 layers x 576 B, which every card reads in full, / 5.3 TB/s.
COST = CostModel(base_ns=15_800_000, prefill_token_ns=7_070, decode_row_ns=8_600, kv_token_ns=7)
RANKS = 2


@dataclass(frozen=True, slots=True)
class Variant:
    """What a variant switches on."""

    mixed: bool = True
    reserve: bool = True
    threshold: bool = True
    deferred: bool = False
    mtp: bool = False
    num_ranks: int = 1


VARIANTS = {
    "before": Variant(reserve=False),
    "after": Variant(),
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
    "seats": "8", "block_size": "4", "kv_blocks": "0", "turnaround_ns": "30",
}  # fmt: skip
AS_VARIANT, AS_WORKLOAD = "as-variant", 0


def _settings() -> dict[str, Setting]:
    return {
        "workload": Setting("report", "which requests", tuple(WORKLOADS)),
        "requests": Setting(AS_WORKLOAD, "clients; 0: as the workload says", at_least=0),
        "prompt_len": Setting(AS_WORKLOAD, "prompt tokens; 0: as the workload says", at_least=0),
        "max_tokens": Setting(AS_WORKLOAD, "completion tokens; 0: as it says", at_least=0),
        "shared_prefix": Setting(0, "prompt tokens that all have in common", at_least=0),
        "budget": Setting(2048, "most tokens of a step", at_least=1),
        "threshold": Setting(1792, "most tokens of one prompt in a step", at_least=1),
        "seats": Setting(256, "most requests that run at a time", at_least=1),
        "block_size": Setting(16, "tokens of a KV block", at_least=1),
        "kv_blocks": Setting(0, "blocks of the KV pool; 0: enough for every seat", at_least=0),
        "prefix_cache": Setting(False, "whether prompts that begin alike share KV"),
        "deferred": Setting(
            AS_VARIANT, "whether tokens are known a step late", (AS_VARIANT, "true", "false")
        ),
        "mtp_k": Setting(0, "tokens drafted for each decode; 0: as the variant", at_least=0),
        "acceptance": Setting(0.7, "share of drafts that are right", at_least=0),
        "turnaround_ns": Setting(
            2000, "from asking for a segment's copies to writing its buffers again", at_least=0
        ),
        "layers": Setting(2, "with torch: layers of the decoder", at_least=1),
        "experts": Setting(0, "with torch: experts of each layer; 0: a dense MLP", at_least=0),
        "window": Setting(
            0, "with torch: tokens seen one by one, all others in blocks of 4; 0: all", at_least=0
        ),
        "attention_chunk": Setting(
            16, "with torch: tokens of history attended to at a time", at_least=1
        ),
    }


@dataclass(frozen=True, slots=True)
class MixedBatches:
    """Report 001; its page is the module's docstring."""

    name: str = "mixed-batches"
    summary: str = "prompts and decodes in one batch: who gets the tokens of its budget"
    variants: tuple[str, ...] = tuple(VARIANTS)
    settings: Mapping[str, Setting] = field(default_factory=_settings)
    executors: tuple[str, ...] = ("simulated", TORCH)
    columns: tuple[str, ...] = (
        "prefill_steps", "mixed_steps", "decode_steps", "first_mixed", "worst_gap_s", "p99_gap_s",
        "median_request_worst_gap_s", "requests_stalled", "median_ttft_s", "tokens_per_s",
        "equal_to_solo", "makespan_s",
    )  # fmt: skip

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Run one variant until every request has ended; the seed is that of drafts and weights."""
        executor = executor_of(self, options)
        if executor == TORCH:
            options = replace(options, settings={**SMALL, **options.settings})
        values = settled(self, variant, options)
        asked = Workload.of(options.workload) if options.workload else _workload(values)
        config = _config(VARIANTS[variant], values, asked, options.faults)
        scheduler = _scheduler(VARIANTS[variant], values, config)
        shares = _shares(asked, VARIANTS[variant].num_ranks, executor, options.faults)
        cost = options.cost or COST
        run = run_for(executor, options, cost, _model(values, options.seed), asked)
        described = {
            "engine": config.as_dict() | {"refuses_mixed_drafts": True},
            "scheduler": asdict(scheduler) | {"faults": sorted(scheduler.faults)},
            "settings": values, "seed": options.seed, **run.described,
        }  # fmt: skip
        with ExitStack() as recordings:
            recorders = [
                recordings.enter_context(
                    recorder_for(
                        out, self.name, variant, described,
                        None if rank else asked.as_dict(), run.clock_info, rank,
                    )
                )
                for rank in range(len(shares))
            ]  # fmt: skip
            engines = [
                Engine(
                    config, share, scheduler,
                    run.paged(config, _priced(cost, config, values, options.seed)),
                    VirtualClock() if rank else run.clock,
                    recorders[rank],
                    None if rank else options.observer,
                )
                for rank, share in enumerate(shares)
            ]  # fmt: skip
            if len(engines) > 1:
                LockStep(engines, scheduler).run()
            else:
                run.serve(engines[0], recorders[0])
        metrics = {
            **serving_metrics([each for engine in engines for each in engine.ended], len(asked)),
            **kind_metrics(engines[0].kinds),
            **token_metrics(engines),
            **run.metrics(engines[0]),
        }
        return RunResult(self.name, variant, out, metrics)


def _model(values: Mapping[str, Any], seed: int) -> ModelConfig:
    return ModelConfig(
        num_layers=values["layers"],
        num_experts=values["experts"],
        window=values["window"],
        chunk_tokens=values["attention_chunk"],
        seed=seed,
    )


def _workload(values: Mapping[str, Any]) -> Workload:
    clients, turns, prompt_len, max_tokens = WORKLOADS[values["workload"]]
    lengths = values["prompt_len"] or prompt_len, values["max_tokens"] or max_tokens
    clients = values["requests"] or clients
    asked = closed_loop(clients, turns, *lengths) if turns > 1 else identical(clients, *lengths)
    return sharing(asked, range(values["shared_prefix"] // SEGMENT_TOKENS))


def _shares(
    asked: Workload, num_ranks: int, executor: str, faults: frozenset[str]
) -> Sequence[Workload]:
    if num_ranks == 1:
        return (asked,)
    if executor == TORCH:
        raise ConfigError("data-parallel runs on costs alone", todo="leave --executor torch out")
    if any(spec.after for spec in asked.specs):
        raise ConfigError("clients who wait for answers cannot be dealt to several ranks")
    if "dealt-to-one-rank" in faults:
        return Workload(asked.specs[:-1]), Workload(asked.specs[-1:])
    first, second = asked.specs[::2], asked.specs[1:-1:2]
    return Workload((*first, *asked.specs[1 + 2 * len(second) :: 2])), Workload(second)


def _config(
    variant: Variant, values: Mapping[str, Any], asked: Workload, faults: frozenset[str]
) -> EngineConfig:
    deferred = values["deferred"]
    is_deferred = variant.deferred if deferred == AS_VARIANT else deferred == "true"
    size = values["block_size"]
    longest = max(spec.prompt_len + spec.max_tokens for spec in asked.specs)
    return EngineConfig(
        num_kv_blocks=values["kv_blocks"] or values["seats"] * -(-longest // size),
        block_size=size,
        max_num_batched_tokens=values["budget"],
        max_num_seqs=values["seats"],
        deferred_output=is_deferred,
        prefix_cache=values["prefix_cache"],
        faults=faults,
    )


def _scheduler(variant: Variant, values: Mapping[str, Any], config: EngineConfig) -> Paged:
    mtp_k = values["mtp_k"] or int(variant.mtp)
    if mtp_k and config.deferred_output:
        raise ConfigError("MTP does not work with deferred output", todo="switch one of them off")
    return Paged(
        mixed=variant.mixed,
        reserve=variant.reserve,
        long_prefill_threshold=values["threshold"] if variant.threshold else 0,
        mtp_k=mtp_k,
        faults=config.faults,
    )


def _priced(
    cost: CostModel, config: EngineConfig, values: Mapping[str, Any], seed: int
) -> Simulated:
    split = Split(config.faults, CopyQueue(turnaround_ns=values["turnaround_ns"]))
    return Simulated(cost, split, config.deferred_output, values["acceptance"], seed)
