"""`ep-multiplexing`: a head and its workers serve several sequences, or one after the other.

## What happened
A model's experts are shared between two machines. The head schedules; every command that it
computes, it first broadcasts to the worker, and both then go through the layers and meet in an
all-reduce after each layer's experts. The commands had no way to say *which* sequence they were
for. So the worker had one, the engine was clamped to one, and of four requests that came at once
the last waited for three others to end: two of four ran into a timeout of 605 s.

The change puts a slot before every command (protocol v2), and the clamp is lifted. Then what the
clamp had hidden came out. Logits of every sequence were written to the same row, so that all
sampled the last one's. The slots of all sequences were broadcast before the first was computed, so
that the head's third collective was a broadcast while the worker's was an all-reduce: both waited,
for good. Batched decodes ran the experts with the grouped GEMM of prompts, which is the wrong path
for four rows: 140 ms where one row after the other takes 88.

## The workload
`requests` requests that are there from the start, each with a prompt of its own, for a real decoder
of two layers, one with a recurrent state and one with attention, each with eight experts, two for
each token. Every rank has the model; each expert belongs to one rank. `--set long_tokens=600` makes
the first request a long one, and `client_timeout_s` is how long the others' clients wait. With
`failing_prompts=3` every third prompt ends in an error when it has been computed.

Nothing is made up but time. The ranks are threads on a virtual clock, and compute takes what the
report measured on its machines (`engine/parallel/costs.py`). The decoder is computed in NumPy, or,
with `--executor expert-parallel`, with torch, which makes the same rows. With `--executor gloo` the
ranks are processes, collectives go through `torch.distributed`, and time is real. `--set ranks=1`
is one rank, which has nobody to talk to and issues no collective.

## How it is recorded
- Every rank writes its own rows, of one trace. Rank 0 is the head: steps, batches, lifecycle and
  outputs are there. A worker knows slots and no requests: it has `steps`, one for each command that
  computes, numbered by itself, and no `batch_rows`.
- `collectives`: every broadcast and all-reduce, by `ordinal` in the group `ep`. `command` says what
  a word is (`slot`, `prefill`, `prefill: tokens`, ...) or which command an all-reduce is for, and
  `slot` is the slot, read as a signed 32-bit number. `dur_ns` is null where it never ended.
- `allocations`: the engine's slots on rank 0. A worker's owner is `slot N`, the head's number: it
  differs from `id` where the two disagree. `generation` is how often the slot had been claimed
  before, by which the head's claim and the worker's are the same one. A `move` is a head that
  compacts.
- `accesses` of `logits` (rows on the device), `host-logits` and `moe-scratch`, in rows, on the
  streams `compute`, `copy` and `host`. `segment` is the row of the batch that the access is for.
  `recurrent-state` is read and written by slot: a sequence that begins has nothing to read.
- `counters`: `protocol version` is what a rank speaks; `recurrent layers` and `attention layers`
  are the nanoseconds that the layers of a kind took of a decode step.
- `steps`: `executed_path` is the batch's kind and the paths of the experts: `fused` for two or
  three rows, `per-token` for one, or four and more, `grouped-gemm` for prompts.

## What to look for
- `before` (v1): one slot; the last request's first token waits for three requests to end. With
  `--set long_tokens=600 --set max_tokens=40` short requests end at 20 to 23 s, and under v2 at 6 s.
- `after` (v2): one step decodes everybody. Throughput is about the same: a row costs what it cost.
  What is gained is that nobody waits for others to *end*.
- `v2-host-staging`, `v2-device-staging`: each row decoded by itself, its logits carried to the host
  or copied to a row of their own. `v2-grouped-gemm`: the wrong path, 1.6 times the step at four
  rows; it sorts once for a layer, and wins from 42 rows on. `v2-grouped-attention`: the wrong path
  in the attention layers alone.
- `--fault NAME` switches on a bug of such an engine; `record --list` has them. The head goes on
  until the ranks cannot: then requests are aborted, with what faces what as the cause.

## The table
`late` are those whose clients had gone by then. First token of the luckiest and of the last
request; `tail_s`, the end of the last short one; mean and last finish, tokens a second, the mean
step of the widest decode. `equal_to_solo` counts the requests whose tokens are those that the model
says to them alone; `outcome` is `served`, or what the ranks waited for: all of
that is the cause of each abort in `lifecycle`. Under gloo a rank knows only its own side, and what
faced what is found in both journals.

## References
Atlas (Avarok-Cybersecurity) pull request 101, issue 99, ADR 0011; pull request 118 for one rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from stepscope.engine.clock import WallClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors import Executor
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.model import require_torch
from stepscope.engine.parallel.expert_choices import GROUPED_ATTENTION, GROUPED_GEMM
from stepscope.engine.parallel.protocol import Codebook
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.member import Journal
from stepscope.engine.parallel.shares.decodes import DEVICE_STAGING, HOST_STAGING
from stepscope.engine.parallel.shares.models import PLAIN, TORCH
from stepscope.engine.runs.metrics import known, serving_metrics
from stepscope.engine.runs.outcome import outcome
from stepscope.engine.runs.ranks import Group, answers_alone, serve
from stepscope.engine.runs.scenario import (
    DEFAULTS,
    PRODUCER,
    VIRTUAL,
    Metric,
    Options,
    RunResult,
    Setting,
    as_given,
    executor_of,
    recorder_for,
    settled,
)
from stepscope.engine.runs.stopped_at import stopped_at
from stepscope.engine.schedulers.multiplexed import Multiplexed
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import Workload, distinct
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.times import SECOND

if TYPE_CHECKING:
    from stepscope.engine.executors.expert_parallel import ExpertParallel
    from stepscope.engine.requests.finishing import Ended

V1 = ParallelConfig(num_slots=1, head_version=1, worker_version=1)
VARIANTS = {
    "before": V1,
    "after": ParallelConfig(),
    "v2-host-staging": ParallelConfig(decode=HOST_STAGING.name),
    "v2-device-staging": ParallelConfig(decode=DEVICE_STAGING.name),
    "v2-grouped-gemm": ParallelConfig(experts=GROUPED_GEMM.name),
    "v2-grouped-attention": ParallelConfig(experts=GROUPED_ATTENTION.name),
}
COLUMNS = (
    "protocol", "requests", "finished", "late", "equal_to_solo", "ttft_min_s", "ttft_max_s",
    "tail_s", "mean_latency_s", "makespan_s", "tokens_per_s", "decode_rows", "decode_step_ms",
    "collectives", "outcome",
)  # fmt: skip


def _settings() -> dict[str, Setting]:
    return {
        "requests": Setting(4, "how many requests, all at once", at_least=1),
        "slots": Setting(4, "slots under v2; v1 has one", at_least=1, at_most=256),
        "long_tokens": Setting(0, "tokens of the first of them; 0 for no long one", at_least=0),
        "client_timeout_s": Setting(
            0.0, "how long the others' clients wait; 0 for as long as it takes", at_least=0.0
        ),
        "max_tokens": Setting(16, "tokens that the last of them may generate", at_least=1),
        "stagger": Setting(0, "tokens fewer for each request before the last", at_least=0),
        "prompt_len": Setting(16, "tokens of the first prompt; each has one more", at_least=1),
        "slot_tokens": Setting(1024, "tokens that a slot holds", at_least=1),
        "ranks": Setting(2, "ranks, the head included", at_least=1),
        "failing_prompts": Setting(0, "every so many prompts fails, 0: none", at_least=0),
        "verify_width": Setting(1, "tokens of a decode, guesses included; up to 4", at_least=1),
        "codebook": Setting("", "commands with other words, as allocate=0xFFFFFFF5,..."),
        "timeout_s": Setting(30.0, "how long gloo waits in a collective", at_least=0.1),
    }


@dataclass(frozen=True, slots=True)
class EpMultiplexing:
    """The scenario; see the module's docstring."""

    name: str = "ep-multiplexing"
    summary: str = "report 003: a head and workers, with a slot in every command or without"
    variants: tuple[str, ...] = tuple(VARIANTS)
    settings: Mapping[str, Setting] = field(default_factory=_settings)
    executors: tuple[str, ...] = ("simulated", "expert-parallel", "gloo")
    columns: tuple[str, ...] = COLUMNS

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Serve the requests under `variant`, and write every rank's rows to `out` if asked.

        MissingExtra where an executor needs torch and there is none.
        """
        values = settled(self, variant, options)
        if options.cost:
            raise ConfigError(f"{self.name} takes no costs: it has those of its report")
        executed_by = executor_kind(executor_of(self, options))
        if executed_by.needs_torch:
            require_torch()
        model = TORCH if executed_by.needs_torch else PLAIN
        asked = Workload.of(options.workload) if options.workload else _requests(values)
        parallel = _parallel(variant, values, options, model.name)
        scheduler = Multiplexed(values["slot_tokens"], values["verify_width"])
        sizes = _sizes(parallel, options.faults)
        described = {
            "engine": sizes.as_dict(), "scheduler": asdict(scheduler),
            "parallel": parallel.as_dict(), "executor": executed_by.name,
            "declared_paths": {"prefill": ["grouped-gemm"], "decode": ["fused", "per-token"]},
            **as_given(values, options),
        }  # fmt: skip
        is_real = executed_by.is_real_time
        with Group.started(
            parallel, values["timeout_s"], is_real=is_real, observer=options.observer
        ) as group:
            alone = answers_alone(parallel, asked)
            clock = group.clock()
            epoch_ns = clock.epoch_ns if isinstance(clock, WallClock) else None
            told = VIRTUAL if epoch_ns is None else ClockInfo("wall", epoch_ns)
            journal = Journal(out, PRODUCER, self.name, variant, told) if out else None
            with recorder_for(out, self.name, variant, described, asked.as_dict(), told) as rec:

                def engine_on(executor: Executor) -> Engine:
                    return Engine(sizes, asked, scheduler, executor, clock, rec, options.observer)

                engine, executor = serve(group, clock, engine_on, alone, rec, journal)
        metrics = {
            "protocol": f"v{parallel.head_version}",
            **_metrics(engine, executor, asked),
            "outcome": stopped_at(executor.stopped, out)
            or outcome(engine.ended, len(asked), engine.stopped),
        }
        return RunResult(self.name, variant, out, metrics, engine.stopped)


def _requests(values: Mapping[str, Any]) -> Workload:
    """Return them with the long one in front; its client knows that it takes long, and waits."""
    asked = distinct(
        values["requests"], values["prompt_len"], values["max_tokens"], values["stagger"]
    )
    if values["client_timeout_s"]:
        asked = asked.due(round(values["client_timeout_s"] * SECOND))
    if not values["long_tokens"]:
        return asked
    first, *others = asked.specs
    long = structs.replace(first, max_tokens=values["long_tokens"], deadline_ns=None)
    return Workload([long, *others])


def _parallel(
    variant: str, values: Mapping[str, Any], options: Options, model: str
) -> ParallelConfig:
    given = VARIANTS[variant]
    if "v1-head-v2-worker" in options.faults:
        given = replace(V1, worker_version=2)
    if "v2-head-v1-worker" in options.faults:
        given = replace(given, worker_version=1)
    return replace(
        given,
        world_size=values["ranks"],
        num_slots=1 if given.head_version == 1 else values["slots"],
        slot_tokens=values["slot_tokens"],
        failing_prompts=values["failing_prompts"],
        model=model,
        codebook=Codebook.parse(values["codebook"]),
        seed=options.seed,
        faults=options.faults,
    )


def _sizes(parallel: ParallelConfig, faults: frozenset[str]) -> EngineConfig:
    """As many sequences as slots, no paged KV, and room for a prompt in every slot."""
    return EngineConfig(
        num_kv_blocks=0,
        num_slots=parallel.num_slots,
        max_num_seqs=parallel.num_slots,
        max_num_batched_tokens=parallel.num_slots * parallel.slot_tokens,
        faults=faults,
    )


def _metrics(engine: Engine, executor: ExpertParallel, asked: Workload) -> dict[str, Metric]:
    served = serving_metrics(engine.ended, len(asked))
    arrival_ns = {spec.id: spec.arrival_ns for spec in asked.specs}
    waits_ns = [ts_ns - arrival_ns[each] for each, ts_ns in executor.first_token_ns.items()]
    num_tokens = sum(each.request.num_generated for each in engine.ended)
    makespan_ns = max((each.end_ns for each in engine.ended), default=0)
    widest = max((rows for rows, _ in executor.decode_steps), default=None)
    steps_ns = [dur_ns for rows, dur_ns in executor.decode_steps if rows == widest]
    num_equal = executor.equal_to_solo(engine.ended)
    figures = {
        **served,
        "tail_s": _tail_s(engine.ended),
        "ttft_min_s": round(min(waits_ns) / SECOND, 3) if waits_ns else None,
        "ttft_max_s": round(max(waits_ns) / SECOND, 3) if waits_ns else None,
        "tokens": num_tokens,
        "tokens_per_s": round(num_tokens * SECOND / makespan_ns, 1) if makespan_ns else None,
        "decode_rows": widest,
        "decode_step_ms": round(sum(steps_ns) / len(steps_ns) / 1e6, 2) if steps_ns else None,
        "collectives": executor.num_collectives,
        "equal_to_solo": f"{num_equal}/{len(asked)}" if num_tokens else None,
    }
    return known(figures)


def _tail_s(ended: Sequence[Ended]) -> float | None:
    """Return how long the last of the short requests took: of all, where none is longer."""
    longest = max((each.request.max_tokens for each in ended), default=0)
    finished = [each for each in ended if each.event == "finish"]
    short = [each for each in finished if each.request.max_tokens < longest] or finished
    took_ns = [each.end_ns - each.request.arrival_ns for each in short]
    return round(max(took_ns) / SECOND, 3) if took_ns else None
