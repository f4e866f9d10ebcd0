"""`mix-admission`: a MIX task is sent to a core group whose vector core is still busy.

## What happened
A MIX kernel needs a whole core group: the cube core (AIC) and both vector cores (AIVs). The
scheduler of the report admitted it to a group whenever the *AIC* was free. When an AIV of the group
still ran an earlier AIV-only task, the MIX landed on it: one part took the AIC at once, another
had to wait behind the vector task. It was seen on MoE layers, where vector work (token dispatch,
activations) and MIX kernels (attention) of different micro-batches interleave; one layer alone
never shows it, because its MIX tasks wait for all of its vector work anyway.

The guard that was asked for: admit a MIX only if the AIC *and every AIV* of the group are free.
Two ways round it were named and rejected: a *barrier* that drains vector work before any MIX, which
gives up legal overlap, and *reserving the whole group* for every AIV-only task, which gives up
vector parallelism.

## The workload
A few requests decode. Each step's batch is split into 3 micro-batches and becomes one task graph:
4 MoE layers of each micro-batch, in flight together on 8 core groups (`moe-interleaved`). The
prompt's step is lowered to paged attention, which has no MIX. Kernel times are ours; what the
scheduler costs is as documented on silicon.

## What to look for
- `before` (`aic-free`): COR001 names each MIX block that was split, the vector block that held the
  other core, and a group that was all free and not tried. The parts that started hold their cores
  and compute nothing until the last part starts (`aic_held_us`).
- `after` (`all-free`): no split and no skew, for about 1% of makespan (seeds 0-9: -0.4% to 1.7%).
- `all-idle-or-pending`, `per-core-slot`: slots are chosen core by core, so blocks are split too.
- `uniform`: all parts run or all wait. No split, but parts that were queued together start apart
  when what they wait for ends apart (COR003).
- `barrier`, `reserve-group`: clean as well, and slower than the guard: by some 4%, and 2.6 times.

`--fault predicate-of-the-one-before` (of `after`) loses work and stalls nothing: tasks count as run
and no core ran a block of them (COR012).

A split is not all loss where hardware queues: a part that waits in a pending slot starts sooner
after the block before it than a scheduler could send it. That is why the policies that split are
not slower here; what they break is the kernel author's assumption that a MIX has its group.

## Hardware that does not queue
`--set late_part=corrupts` or `hangs` is a device on which nothing holds a part back until its mates
have started. What the report calls hard to diagnose is to be seen there:

- `corrupts`: `before` is a little *faster* than `after`, nothing fails, and its tokens are wrong
  (EQV001). The tile that a MIX sends lands in the local memory of a vector block that did nothing
  wrong; COR013 names both, from what was written and read there.
- `hangs`: the part that comes late waits for a tile that was lost, until a watchdog gives up
  (COR010).

The guard, `barrier` and `reserve-group` lose nothing there. `uniform`, which starts all parts or
makes all pending, does: parts that were pending behind blocks of different length start apart. The
faults `late-part-overwrites-tile` and `late-part-hangs` are the guard without its look at the AIVs.

## Barriers of the author
`--set author_barriers=before-mix` puts a barrier into the graph itself, in front of every MIX:
what the report calls user-side serialization. An author knows the order in which kernels are
submitted, not which of them will run together, so independent micro-batches wait for each other:
some 40% of makespan, where a scheduler's `barrier` costs 4%.

## A graph of one's own
`--workload graph.json` dispatches a task graph that you wrote, or that of a swimlane or trace of
core groups, instead of a batch: docs/formats.md.

## The table
Per policy: the findings of COR001 and COR003, how long AICs were held by MIX parts whose other
parts had not started (`aic_held_us`, what a split costs), the makespan of a decode step's graph,
the share of time in which AICs and AIVs compute, and how long MIX blocks wait from ready to their
last start.
`outcome` is how the run ended, and how many tasks of decode steps computed something wrong where
contents are known; of a graph that stalled no time is told.
`stepscope record mix-admission --variant all` prints it.

## References
hw-native-sys/simpler, the `tensormap_and_ringbuffer` runtime of a2a3: the request to check AIV
occupancy before MIX dispatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.device.admission import ADMISSIONS, admission
from stepscope.engine.device.graphs.barriers import AUTHOR_BARRIERS, NO_BARRIER, author_barriers
from stepscope.engine.device.late_parts import LATE_PARTS, WAITS, late_part
from stepscope.engine.device.lowering.workloads import WORKLOADS, workload
from stepscope.engine.device.rings import RingSizes
from stepscope.engine.executors.clusters import Clusters
from stepscope.engine.runs.outcome import DEVICE, in_short, outcome
from stepscope.engine.runs.replay import replay
from stepscope.engine.runs.scenario import (
    DEFAULTS,
    Options,
    RunResult,
    Setting,
    as_given,
    recorder_for,
    settled,
)
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.graph_files import graphs_in
from stepscope.engine.workloads.graphs import Graphs
from stepscope.engine.workloads.workload import Workload, identical
from stepscope.ingest.errors import ConfigError

NAME, MAIN, AS_VARIANT = "mix-admission", "moe-interleaved", "as-variant"
OF_REQUESTS = ("workload", "steps", "requests", "prompt_len")
POLICY_OF = {
    "before": "aic-free",
    "after": "all-free",
    **{policy.name: policy.name for policy in ADMISSIONS},
}


def _settings() -> dict[str, Setting]:
    policies = (AS_VARIANT, *(policy.name for policy in ADMISSIONS))
    lowerings = tuple(each.name for each in WORKLOADS)
    return {
        "admission": Setting(AS_VARIANT, "admission policy", policies),
        "workload": Setting(MAIN, "what a decode step is lowered to", lowerings),
        "groups": Setting(
            8,
            "core groups, each 1 cube core (AIC), 2 vector cores (AIV)",
            at_least=1,
            at_most=1024,
        ),
        "threads": Setting(3, "scheduler threads", at_least=1),
        "steps": Setting(2, "decode steps", at_least=1),
        "requests": Setting(12, "requests decoding together", at_least=1),
        "prompt_len": Setting(256, "prompt tokens of each", at_least=1),
        "task_slots": Setting(16384, "tasks that may be submitted and not reclaimed", at_least=1),
        "heap_kib": Setting(262144, "KiB of heap for the outputs of these", at_least=1),
        "dep_entries": Setting(16384, "dependencies that these may have", at_least=1),
        "late_part": Setting(
            WAITS.name,
            "what comes of a MIX part that is late: its mates wait, or nothing holds them",
            tuple(each.name for each in LATE_PARTS),
        ),
        "author_barriers": Setting(
            NO_BARRIER.name, "barriers between AIV-only and MIX tasks in the graph",
            tuple(each.name for each in AUTHOR_BARRIERS),
        ),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class MixAdmission:
    """Report 000; its page is the module's docstring."""

    name: str = NAME
    summary: str = "MIX tasks (cube and vector cores at once): who may be admitted to a group"
    variants: tuple[str, ...] = tuple(POLICY_OF)
    settings: Mapping[str, Setting] = field(default_factory=_settings)
    executors: tuple[str, ...] = ("clusters",)
    columns: tuple[str, ...] = (
        "policy", "COR001", "COR003", "aic_held_us", "makespan_us", "aic_use", "aiv_use",
        "mix_wait_p50_us", "mix_wait_max_us", "outcome",
    )  # fmt: skip

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Run one variant until every request has its tokens.

        `observer` is called at every event of the device too.
        """
        values = settled(self, variant, options)
        if values["admission"] == AS_VARIANT:
            values["admission"] = POLICY_OF[variant]
        graphs = _graphs(options)
        device, how, stopped = (
            _replayed(graphs, variant, out, values, options)
            if graphs
            else _served(variant, out, values, options)
        )
        how += _wrong(device.usage.num_wrong_tasks)
        metrics = {"policy": values["admission"], **device.usage.metrics(), "outcome": how}
        return RunResult(self.name, variant, out, metrics, stopped)


Ran = tuple[Clusters, str, str | None]
"""A device, how what it ran ended, and why that was given up, None where it was not."""


def _wrong(num_tasks: int | None) -> str:
    """What is wrong with what was computed, for the outcome; nothing where nobody knows."""
    return f", {num_tasks:,} task{'s' * (num_tasks > 1)} wrong" if num_tasks else ""


def _graphs(options: Options) -> Graphs | None:
    """The graphs that are asked for, None where it is requests."""
    given = options.workload
    if isinstance(given, Path):
        return graphs_in(given)
    return given if isinstance(given, Graphs) else None


def _replayed(
    graphs: Graphs, variant: str, out: Path | None, values: dict[str, Any], options: Options
) -> Ran:
    """Run graphs without requests, on a device like theirs unless another one is asked for."""
    for name in OF_REQUESTS:
        if name in options.settings:
            raise ConfigError(f"{name} is about requests, and a task graph has none")
        del values[name]
    theirs = {"groups": graphs.groups, "threads": graphs.threads}
    values |= {name: num for name, num in theirs.items() if num and name not in options.settings}
    told = {"source": graphs.source, "graphs": len(graphs.graphs), "inferred": graphs.inferred}
    device = _device(values, options)
    described = {**as_given(values, options), "graph": told, "device": device.described()}
    with recorder_for(out, NAME, variant, described, None) as recorder:
        stall = replay(graphs, device, VirtualClock(), recorder, options.observer)
    stopped = f"{DEVICE}{stall}" if stall else None
    return device, in_short(stopped) if stopped else "ran to its end", stopped


def _served(variant: str, out: Path | None, values: Mapping[str, Any], options: Options) -> Ran:
    """Serve requests, each step of which is lowered to a graph."""
    requests = Workload.of(options.workload) if options.workload else _requests(values)
    config = _config(requests, options.faults)
    device, observer = _device(values, options), options.observer
    described = {
        "engine": config.as_dict(), **as_given(values, options), "device": device.described(),
    }  # fmt: skip
    with recorder_for(out, NAME, variant, described, requests.as_dict()) as recorder:
        engine = Engine(config, requests, Bucketed(), device, VirtualClock(), recorder, observer)
        if observer:
            device.on_event = engine.observe
        engine.run()
    return device, outcome(engine.ended, len(requests), engine.stopped), engine.stopped


def _device(values: Mapping[str, Any], options: Options) -> Clusters:
    return Clusters(
        admission(values["admission"]), workload(values.get("workload", MAIN)),
        num_groups=values["groups"], num_threads=values["threads"], seed=options.seed,
        faults=options.faults, late_part=late_part(values["late_part"]),
        author_barriers=author_barriers(values["author_barriers"]),
        ring_sizes=RingSizes(values["task_slots"], values["heap_kib"] << 10, values["dep_entries"]),
    )  # fmt: skip


def _requests(values: Mapping[str, Any]) -> Workload:
    """All at once; the first of each request's tokens comes from its prompt."""
    return identical(values["requests"], values["prompt_len"], values["steps"] + 1)


def _config(requests: Workload, faults: frozenset[str]) -> EngineConfig:
    """A pool and a budget in which nobody has to wait: the device is what this is about."""
    lengths = [spec.prompt_len + spec.max_tokens for spec in requests.specs]
    return EngineConfig(
        num_kv_blocks=sum(length // 16 + 1 for length in lengths) or 1,
        max_num_batched_tokens=max(8192, sum(lengths)),
        max_num_seqs=max(256, len(lengths)),
        faults=faults,
    )
