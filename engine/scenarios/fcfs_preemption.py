"""`fcfs-preemption`: forty equal requests at once, and most of them starve.

## What happened
A user of an engine with paged KV sent 40 identical requests at once that together needed about
twice the KV pool. With the scheduler as it was, 24 or more never finished: the client gave up on
them. Five decisions, each with a reason of its own, worked together:

- the batch is one *bucket* of equal lengths, and the *shortest* bucket was chosen;
- completions ran in such buckets too, though a decode is one token at any length;
- everything outside the bucket was *preempted*, though its blocks were not needed, and later
  computed again from its first token;
- running requests were ordered *newest first*, so the oldest were the ones to be preempted;
- a request that waited long got *one* victim's blocks, and was *ignored* when that was too little.

So whoever was let in last was the shortest, ran, and threw everybody else's work away, step after
step: between two tokens of the shortest, all others were prefilled again and preempted again.
Turning the order round, as was proposed first, changes nothing. Deferring instead of preempting is
what saves the work and brings all in time; but only the bucket of the *oldest* request makes it
fair, and only completions of any length together, *jagged*, make it fast. The repair does all of
it: it chooses the oldest bucket of prompts, decodes all lengths in one step, *defers* what is
incompatible with its blocks, preempts *until it fits* and only of lower priority, and lets what
does not fit yet *hold*.

Images and text never share a step. They met in a loop that drained the queue of those who run, and
put the incompatible back on that same queue: it never ended. Deferred, they take turns.

## The workload
40 requests of 192 prompt and 100 completion tokens (4,000 in all, as in the report), all at once.
The pool has 60 blocks of 128 tokens: exactly half of what all forty need at their end, so that 20
fit. The deadline is 1.5 times the end of the repaired run; then clients hang up, which the trace
shows as `abort`.

- `--set prompt_len=512 --set block_size=16 --set num_kv_blocks=624`: 16 fit. As in the report, they
  are served before the trouble begins, and 24 starve.
- `--set burst=16 --set gap_ms=4000`: 16 at a time, 4 s apart; with `--set prompt_len=64 --set
  block_size=32 --set num_kv_blocks=120` the bursts are the cohorts.
- `--set images=every-4`: every fourth request has an image.

## What to look for
- `before`: STV001 names the starved, all forty: on exactly half of the blocks the twenty that fit
  at their end are served, or, as another one is let in for one victim after 64 holds, nobody;
  KVB003 a preemption with free blocks in almost every step; KVB004 what is computed again for that;
  STV002 older for younger.
- `order-only`: the order turned round and nothing else; the same numbers.
- `defer-only`: other buckets keep their blocks and nothing else is repaired; nobody is late, yet
  the first to come wait for the last, because those are shorter (STV003), and somebody is left
  out of half of the steps of decodes (STV018).
- `after`: no finding; finish times rise in cohorts, of as many as fit, in order of arrival (in the
  report 16 requests at 90 s, 16 at 181 s, the rest at 192 s), and the run ends a fifth sooner than
  `defer-only`. With `--set completions=bucketed` it does not.
- `--fault NAME` (of `after`; `record --list` has them all) also switches on bugs of the queues, of
  the pool, of admission, and of what runs the batches:
  `incompatible-requeued-on-drained-queue`: images among text are put back on the queue that is
  being drained, hundreds of times in a step, until a watchdog ends it (STV007);
  `block-given-twice`: a `claim` of a block that another request still has (KVB001);
  `block-leaked`: a `finish` with one `release` fewer than its blocks (KVB002);
  `nobody-gives-way`: idle steps in which every request that holds blocks waits for more (KVB008);
  `too-long-is-held`: a request that needs more blocks than there are, held for ever (STV014);
  `ignored-told-as-finished`: a `finish` of a request that never had a token (STV015);
  `batch-full-latched`: idle steps, with a queue and a pool that is free (STV010);
  `preempted-ends-in-error`: an `abort` in error for each request that was preempted (STV012);
  `executor-dies`: the last batch has no step, and nobody an end (TRC006).

## The table
Requests late and finished, preemptions, tokens computed again, the end of the run, the mean
latency of those that finished, and how many finished when.

## References
mistral.rs issue 2033 and pull request 2034.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.runs.metrics import cohorts_text, serving_metrics
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
from stepscope.engine.schedulers.bucketed import KNOBS, Bucketed
from stepscope.engine.serving.engine import Engine
from stepscope.engine.serving.observing import Observer
from stepscope.engine.workloads.workload import Workload, bursty, fixed
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import MS

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

AS_VARIANT = "as-variant"
COST = CostModel()
REPORTED = frozenset(
    {
        "completions-in-buckets",
        "shortest-bucket",
        "newest-first-oldest-preempted",
        "bucket-preemption-with-free-blocks",
        "one-victim-then-ignored",
    }
)
FAULTS_OF = {
    "before": REPORTED,
    "after": frozenset[str](),
    "order-only": REPORTED - {"newest-first-oldest-preempted"},
    "defer-only": REPORTED - {"bucket-preemption-with-free-blocks"},
}


def _settings() -> dict[str, Setting]:
    sizes = {
        "requests": Setting(40, "requests in all", at_least=1),
        "prompt_len": Setting(192, "prompt tokens of each", at_least=1),
        "max_tokens": Setting(100, "completion tokens of each", at_least=1),
        "burst": Setting(40, "requests sent at a time", at_least=1),
        "gap_ms": Setting(0, "milliseconds between bursts", at_least=0),
        "images": Setting("none", "which requests have an image: none, or every-N"),
        "urgent": Setting(0, "every so many requests is urgent, 0: none", at_least=0),
        "jitter_ms": Setting(20, "milliseconds within which a burst is sent", at_least=0),
        "num_kv_blocks": Setting(60, "blocks of the KV pool", at_least=1),
        "block_size": Setting(128, "tokens of a block", at_least=1),
        "patience": Setting(64, "steps that a request is held before others give way", at_least=0),
        "deadline": Setting(1.5, "deadline, in ends of the repaired run", at_least=1),
    }
    knobs = {
        knob: Setting(AS_VARIANT, f"the scheduler's {knob}", (AS_VARIANT, *choices))
        for knob, choices in KNOBS.items()
    }
    return sizes | knobs


@dataclass(frozen=True, slots=True)
class FcfsPreemption:
    """Report 004; its page is the module's docstring."""

    name: str = "fcfs-preemption"
    summary: str = "40 equal requests at once on half the KV they need: who starves, and why"
    variants: tuple[str, ...] = tuple(FAULTS_OF)
    settings: Mapping[str, Setting] = field(default_factory=_settings)
    executors: tuple[str, ...] = ("simulated",)
    columns: tuple[str, ...] = (
        "late", "finished", "preempted", "recomputed_tokens", "makespan_s", "mean_latency_s",
        "cohorts", "STV001", "STV002", "STV003", "KVB003", "outcome",
    )  # fmt: skip

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Run one variant until every request has ended or the deadline has passed."""
        values = settled(self, variant, options)
        asked = (
            Workload.of(options.workload) if options.workload else _workload(values, options.seed)
        )
        is_due = asked.last_deadline_ns is not None
        cost = options.cost or COST
        due = asked if is_due else asked.due(_deadline_ns(asked, values, cost))
        config = replace(
            _config(values),
            faults=FAULTS_OF[variant] | options.faults,
            timeout_ns=due.last_deadline_ns,
        )
        scheduler = _scheduler(config.faults, values)
        described = {
            "engine": config.as_dict(), "scheduler": asdict(scheduler) | {"mixed": False},
            "cost": asdict(cost), **as_given(values, options),
        }  # fmt: skip
        with recorder_for(out, self.name, variant, described, due.as_dict()) as recorder:
            engine = _served(config, due, scheduler, cost, recorder, options.observer)
        metrics = {
            **serving_metrics(engine.ended, len(due), engine.left_open),
            "cohorts": cohorts_text(engine.ended),
            "outcome": outcome(engine.ended, len(due), engine.stopped),
        }
        return RunResult(self.name, variant, out, metrics, engine.stopped)


def _served(
    config: EngineConfig,
    workload: Workload,
    scheduler: Bucketed,
    cost: CostModel,
    recorder: Recorder | None = None,
    observer: Observer | None = None,
) -> Engine:
    clock = VirtualClock()
    engine = Engine(config, workload, scheduler, Simulated(cost), clock, recorder, observer)
    engine.run()
    return engine


def _deadline_ns(workload: Workload, values: Mapping[str, Any], cost: CostModel) -> int:
    repaired = _served(_config(values), workload, Bucketed(), cost)
    return int(values["deadline"] * repaired.clock.now_ns())


def _workload(values: Mapping[str, Any], seed: int) -> Workload:
    lengths = fixed(values["prompt_len"], values["max_tokens"])
    gap_ns, jitter_ns = values["gap_ms"] * MS, values["jitter_ms"] * MS
    asked = bursty(values["requests"], values["burst"], gap_ns, lengths, seed, jitter_ns)
    if every := _every(values["images"]):
        asked = asked.with_images(every)
    return asked.with_urgent(values["urgent"]) if values["urgent"] else asked


def _every(images: str) -> int:
    """Return the N of `every-N`, 0 for none; ConfigError for anything else."""
    every = re.fullmatch(r"every-([1-9]\d{0,8})", images)
    if not every and images != "none":
        raise ConfigError(f"images={images}: choose none or every-N, as every-4")
    return int(every[1]) if every else 0


def _config(values: Mapping[str, Any]) -> EngineConfig:
    return EngineConfig(num_kv_blocks=values["num_kv_blocks"], block_size=values["block_size"])


def _scheduler(faults: frozenset[str], values: Mapping[str, Any]) -> Bucketed:
    asked = {knob: values[knob] for knob in KNOBS if values[knob] != AS_VARIANT}
    return replace(Bucketed().with_faults(faults), patience=values["patience"], **asked)
