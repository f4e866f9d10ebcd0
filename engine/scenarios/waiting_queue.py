"""`waiting-queue`: requests that wait and could be let in, and what a scheduler makes of them.

## What happened
Six public reports of one kind: the device has something to do or nothing, the pool has room or is
held by those who wait, and in either case somebody waits whom a loop over the queue did not reach.
`--set workload=NAME` chooses one:

- `stream` (sglang 32549): prompts always go first, and with 360 a minute of 3,000 to 6,000 tokens
  there always is one: 2,863 batches of prompts to some 37 of decodes in 15 minutes.
- `four-prompts` (sglang 35537): four prompts for four running slots. The chunk under way counted as
  one request more, so the batch was full with three; that was remembered until somebody ended.
- `parked` (vLLM 53130): a request is skipped while its grammar is compiled. Whether it is ready is
  asked by the loop that lets requests in, which a spent token budget stops before: while one long
  prefill runs, nobody is promoted, and he whose grammar does not compile gets no error.
- `heavy-head` (vLLM 33499): the head needs nearly the whole pool, and those behind it 10 of the 50
  blocks that are free. Strictly in order all wait; when all may pass, the head starves: no token in
  120 s in which 132 others finished. The repair lets it be passed eight times.
- `half-the-pool` (vLLM 40968): two requests have half of the blocks each, for KV that came from
  another engine. The first lacks more and stops the loop; the second, whose KV has come, is behind
  it. Nothing runs until clients give up, after 20 to 30 minutes.
- `too-long` (vllm-ascend 17143): the blocks that a second modality took left the pool smaller than
  one request. It was tried in every step, 3,684 times, and nobody was told.

## The variants
- `before`: the engine with the report's bug; `after`: without it. So `--variant all` compares them.
- Alternatives are settings: `decode_rounds`, the steps that are the decodes' after one with
  prompts (sglang 35017); `max_prefills`, after how many with prompts one is the decodes' (32775);
  `max_passes`, 0 for strictly in order and -1 for no bound; `loads=lateral`, which takes
  blocks from those who wait where `reserved` does not give them out (vLLM 40968 did the one and
  44560 the other); `video_blocks=0`, with which the long request fits.

## How it is recorded
- `lifecycle`: `ready` when what a request waited for beside room has come, `defer` when the
  scheduler has taken note of that, `preempt` also of one that waits and holds blocks.
- `decisions`: without a `resource` while a request is not ready; `phase` when the decodes' turn is.
- `allocations`: KV that comes from elsewhere has its blocks from when it is asked for.
- `batch_rows`: `num_cached` tokens came from elsewhere.

## What to look for
- `--fault NAME` switches on the bug of a workload, which it chooses:
  `prompts-always-first`: `stream` without decode steps (STV011);
  `full-since-the-last-chunk`: a running slot is free and "every running slot is taken" (STV010,
  STV009);
  `ready-not-looked-at`: from `ready` to `defer` pass many steps (STV020);
  `blocked-head-holds-all`: those behind wait longer than they run, with room (STV006);
  `passed-without-bound`: the head gets nothing while others come and go (STV001, STV002);
  `half-the-pool-each`: all blocks are held and nothing is computed (KVB008, STV020);
  `never-fits-and-waits`: `needed` is more than there is (STV014).

## The table
Requests that finished, steps by kind, preemptions, the longest gap between two tokens, the median
time to the first token, the mean latency of those that finished, and the end of the run.

## References
SGLang issues 32549 (pull requests 35017, 32775) and 35537 (35609, 30295); vLLM issues 53130 (pull
request 53772) and 31731, pull requests 33499, 40968 and 44560; vllm-ascend pull request 17143.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import Simulated
from stepscope.engine.runs.metrics import kind_metrics, serving_metrics, token_metrics
from stepscope.engine.runs.outcome import outcome
from stepscope.engine.runs.scenario import (
    DEFAULTS,
    Options,
    RunResult,
    Setting,
    as_given,
    recorder_for,
    settled,
)
from stepscope.engine.scenarios.queue_workloads import CASES, Case
from stepscope.engine.schedulers.queued import LOADS, NO_BOUND, Queued
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import SECOND

AS_WORKLOAD, AS_IT_SAYS = 0, -1
VARIANTS = ("before", "after")
SIZES = (
    "requests", "prompt_len", "max_tokens", "max_num_seqs", "budget", "kv_blocks", "block_size",
)  # fmt: skip
MAX_IDLE_STEPS = 100_000  # clients give up before the watchdog does


def _settings() -> dict[str, Setting]:
    help_of = {
        "requests": "requests that are many",
        "prompt_len": "prompt tokens of these",
        "max_tokens": "completion tokens of each",
        "max_num_seqs": "most requests that run at a time",
        "budget": "most tokens of a step",
        "kv_blocks": "blocks of the KV pool",
        "block_size": "tokens of a KV block",
        "timeout_s": "seconds after which all clients give up",
    }
    sizes = {
        name: Setting(AS_WORKLOAD, f"{text}; 0: as the workload says", at_least=0)
        for name, text in help_of.items()
    }
    return {
        "workload": Setting("half-the-pool", "which requests", tuple(CASES)),
        **sizes,
        "per_minute": Setting(360, "with stream: requests that come in a minute", at_least=1),
        "video_blocks": Setting(512, "with too-long: blocks that another modality has", at_least=0),
        "decode_rounds": Setting(
            AS_IT_SAYS, "steps of decodes after one with prompts; -1: as it says", at_least=-1
        ),
        "max_prefills": Setting(
            0, "steps with prompts in a row before one of decodes; 0: no bound", at_least=0
        ),
        "max_passes": Setting(
            8, "times that one that lacks blocks is passed; -1: no bound", at_least=NO_BOUND
        ),
        "loads": Setting("reserved", "when KV from elsewhere gets its blocks", LOADS),
    }


@dataclass(frozen=True, slots=True)
class WaitingQueue:
    """Six public reports; their page is the module's docstring."""

    name: str = "waiting-queue"
    summary: str = "requests that wait and could be let in: six public reports"
    variants: tuple[str, ...] = VARIANTS
    settings: Mapping[str, Setting] = field(default_factory=_settings)
    executors: tuple[str, ...] = ("simulated",)
    columns: tuple[str, ...] = (
        "finished", "prefill_steps", "mixed_steps", "decode_steps", "preempted", "worst_gap_s",
        "median_ttft_s", "mean_latency_s", "makespan_s", "outcome",
    )  # fmt: skip

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Run one variant until every request has ended or its client has given up."""
        values = settled(self, variant, options)
        case = CASES[values["workload"]]
        sizes = {name: values[name] or getattr(case, name) for name in (*SIZES, "timeout_s")}
        asked = (
            Workload.of(options.workload)
            if options.workload
            else case.make({**values, **sizes}, options.seed)
        )
        faults = options.faults | ({case.fault} if variant == "before" else set())
        config = _config(case, {**values, **sizes}, faults)
        scheduler = Queued(
            case.prefill_first,
            case.decode_rounds if values["decode_rounds"] < 0 else values["decode_rounds"],
            values["max_prefills"],
            values["max_passes"],
            values["loads"],
        ).with_faults(faults)
        cost = options.cost or case.cost
        described = {
            "engine": config.as_dict(),
            "scheduler": asdict(scheduler)
            | {"faults": sorted(faults), "mixed": not case.prefill_first},
            "cost": asdict(cost), **as_given(values, options),
        }  # fmt: skip
        with recorder_for(out, self.name, variant, described, asked.as_dict()) as recorder:
            engine = Engine(
                config, asked, scheduler, Simulated(cost), VirtualClock(), recorder,
                options.observer,
            )  # fmt: skip
            engine.run()
        metrics = {
            **serving_metrics(engine.ended, len(asked)),
            **kind_metrics(engine.kinds),
            **token_metrics([engine]),
            "outcome": outcome(engine.ended, len(asked), engine.stopped),
        }
        return RunResult(self.name, variant, out, metrics, engine.stopped)


def _config(case: Case, values: Mapping[str, Any], faults: frozenset[str]) -> EngineConfig:
    lent = values["video_blocks"] if values["workload"] == "too-long" else 0
    if lent >= values["kv_blocks"]:
        raise ConfigError(f"video_blocks={lent}: the KV pool has {values['kv_blocks']} in all")
    return EngineConfig(
        num_kv_blocks=values["kv_blocks"] - lent,
        block_size=values["block_size"],
        max_num_batched_tokens=values["budget"],
        max_num_seqs=values["max_num_seqs"],
        timeout_ns=values["timeout_s"] * SECOND or None,
        idle_ns=case.idle_ns,
        max_idle_steps=MAX_IDLE_STEPS,
        async_dependencies=True,
        faults=faults,
    )
