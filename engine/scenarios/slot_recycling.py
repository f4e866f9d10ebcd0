"""`slot-recycling`: requests take over freed slots while others are in the middle of their output.

## What happened
A decode graph was compiled for a fixed number of slots, each with a KV region of its own. The
scheduler that was put on top of it lets a queue of more requests than slots through: whoever is
first takes the lowest free slot, the rows of empty slots are masked, and whoever reaches their cap
or the end of their output makes room. The report's proof is that every output equals that of its
request alone, whoever its neighbours were: a recycled slot starts clean, and nobody is disturbed.

What it cost: prompts were written to a mirror of the KV on the host, and the mirror is one buffer.
To let one request in beside live ones, the KV of *all* slots was copied to the host (or the live
slots would go back to where the mirror last saw them), the one slot written, and all of it copied
back. The step that followed in the report's plan writes the admitted slot alone, on the device.

## The workload
N requests, all there from the start; request i has a prompt of `20 + (13 i mod 26)` tokens and a
cap of `min(12 + (11 i mod 28), max_cap)`: staggered, so that slots come free one by one. The KV is
that of Llama-3.2-1B in bf16, 16 layers x 8 heads x 64 x K and V x 2 B = 32 KiB a token, in slots
of 128 tokens; the times are a roofline of it on an NVIDIA L4 (300 GB/s, 32 GB/s to the host).

## One step
Admit as many as are queued and fit, first come first served, lowest slot first; for each of them
refresh the mirror, if any slot was live before this step, write the prompt, which gives the first
token, and commit; decode one token in all B rows; let go of who is done. A freed slot is filled in
the next step. With `--set round_trip=per-step` those who are let in together share one refresh and
one commit.
So the row of an admitted request is its prompt *and* one token more, and gives two tokens; a first
token that is the last makes it the prompt alone, and its row is masked.

## How it is recorded
- `batch_rows`: a row for each live slot, in order of `slot`. A slot that has no row in a step was
  masked; the counter `masked rows` counts them.
- `allocations`: a slot changing hands, with its `generation`.
- `accesses`: reads and writes of `device-kv` and `host-mirror`, in bytes, slot after slot. An
  `epoch` numbers the write that the contents come from; a copy is a read and a write of the same.
- `lifecycle`: `finish` with the cause `eos` where the output ended by itself, without a cause at
  the cap. In `outputs` the token is told where it is the end.

## What to look for
- `before` (`host-mirror`): every slot's bytes read and written twice for one admission.
- `after` (`device-write`): the same steps and tokens, and one slot's bytes for each admission.
- `--fault NAME` switches on a bug of such a scheduler:
  `skip-mirror-refresh` (of `before` alone): a commit takes live slots back to an older epoch;
  `recycle-without-clearing`: reads of an epoch from before the owner's first write;
  `masked-row-leak`: outputs of requests in steps whose batch they are not in;
  `refill-when-drained`: a slot stays free, with a queue, for many steps;
  `one-slot-used`: all but one stay free, and each request waits for those before it to end;
  `token-past-cap`, `token-after-eos`: outputs longer than they may be;
  `cap-before-eos`: an output that ends on its cap is told to have been cut. With the last two,
  every second output ends with its 14th token (`--set eos_after=14`).

## On a real decoder
`--executor torch` computes the same steps on a small decoder with weights of `--seed`, in real time
(`--profile` keeps torch.profiler's file in the trace, its spans tied to the steps). Every output is
compared with that of its request alone: `equal_to_solo` is 6/6, and less under each fault that
touches what is computed or kept. An output ends where the model says so, as that of `req-00` with
its 9th token, or at its cap; with `--set ignore_eos=true` at its cap alone, in the steps below.
`skip-mirror-refresh` really loses live slots' last tokens, and `recycle-without-clearing` really
attends to another request's. Layout and bytes are the decoder's, 1,024 a token.

## The table
Steps, requests admitted, and those of them beside live ones; refreshes; masked rows; tokens; bytes
copied between host and device for each admission, on average and at most (one request beside
live ones: all slots twice, 2 x 3 x 4 MiB, against its own, 4 MiB); the end of the run.
The 6 requests on 3 slots take 26 steps, 6 admissions (3 beside live ones), 3 refreshes, 2 masked
rows and 82 tokens; `--set slots=4 --set requests=8 --set max_cap=48` 65, 8 (4), 4, 60 and 208.

## References
mlxcel pull request 468, the continuous-batching scheduler of its OpenXLA path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.executors.ragged import (
    DEVICE_WRITE,
    HOST_MIRROR,
    PER_ADMISSION,
    ROUND_TRIPS,
    Ragged,
)
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.memory.slot_memory import Layout
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.runs.metrics import known, serving_metrics
from stepscope.engine.runs.outcome import outcome
from stepscope.engine.runs.scenario import (
    DEFAULTS,
    Metric,
    Options,
    RunResult,
    Setting,
    as_given,
    executor_of,
    recorder_for,
    settled,
)
from stepscope.engine.runs.simulated_run import run_for
from stepscope.engine.schedulers.slotted import Slotted
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import RequestSpec, Workload

# Llama-3.2-1B in bf16 on one L4: 2.47 GB of weights, 2.47 GFLOP a token at half of the peak.
COST = CostModel(
    base_ns=8_240_000, prefill_token_ns=40_900, decode_row_ns=8_600, kv_token_ns=109
)  # fmt: skip
ADMISSION_OF = {
    "before": HOST_MIRROR,
    "after": DEVICE_WRITE,
    HOST_MIRROR: HOST_MIRROR,
    DEVICE_WRITE: DEVICE_WRITE,
}


def _settings() -> dict[str, Setting]:
    return {
        "slots": Setting(3, "slots, that is rows of the decode batch", at_least=1, at_most=4096),
        "requests": Setting(6, "how many requests", at_least=1),
        "max_cap": Setting(14, "most tokens that any of them may generate", at_least=1),
        "eos_after": Setting(0, "every second output ends with this token; 0: none", at_least=0),
        "ignore_eos": Setting(False, "with torch: whether outputs go on when the model ends them"),
        "slot_tokens": Setting(128, "tokens that a slot holds", at_least=1),
        "token_bytes": Setting(32768, "bytes of a token's KV", at_least=1),
        "round_trip": Setting(
            PER_ADMISSION, "when the mirror is refreshed and committed", ROUND_TRIPS
        ),
    }


@dataclass(frozen=True, slots=True)
class SlotRecycling:
    """Report 002; its page is the module's docstring."""

    name: str = "slot-recycling"
    summary: str = "more requests than slots: what it takes to let one in beside live ones"
    variants: tuple[str, ...] = tuple(ADMISSION_OF)
    settings: Mapping[str, Setting] = field(default_factory=_settings)
    executors: tuple[str, ...] = ("ragged", "torch")
    columns: tuple[str, ...] = (
        "admission", "steps", "admits", "midstream", "refreshes", "masked_rows", "tokens",
        "bytes_per_admit", "max_bytes_per_admit", "equal_to_solo", "makespan_s", "outcome",
    )  # fmt: skip

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Run one variant until every request has ended; the seed is that of the weights alone."""
        values = settled(self, variant, options)
        asked = Workload.of(options.workload) if options.workload else _requests(values)
        config = _config(values, options.faults)
        model, executor = ModelConfig(seed=options.seed), executor_of(self, options)
        is_priced = executor_kind(executor).is_priced
        token_bytes = values["token_bytes"] if is_priced else model.token_bytes
        layout = Layout(values["slots"], values["slot_tokens"], token_bytes)
        admission = ADMISSION_OF[variant]
        run = run_for(executor, options, options.cost or COST, model, asked)
        computed = run.slot_model(layout, is_mirrored=admission == HOST_MIRROR)
        device = Ragged(computed, layout, admission, config.faults, values["round_trip"])
        scheduler = Slotted(layout.slot_tokens).with_faults(config.faults)
        described = {
            "engine": config.as_dict(), "scheduler": asdict(scheduler),
            "layout": asdict(layout), **as_given(values, options),
            **run.described,
        }  # fmt: skip
        with recorder_for(
            out, self.name, variant, described, asked.as_dict(), run.clock_info
        ) as recorder:
            engine = Engine(config, asked, scheduler, device, run.clock, recorder, options.observer)
            run.serve(engine, recorder)
        metrics = {
            "admission": admission, **_metrics(engine, device, len(asked)), **run.metrics(engine),
        }  # fmt: skip
        return RunResult(self.name, variant, out, metrics, engine.stopped)


def staggered(
    num_requests: int, max_cap: int, eos_after: int = 0, *, ends_at_eos: bool = True
) -> Workload:
    """Return the report's requests; with `eos_after`, every second one ends with that token.

    With `ends_at_eos` they end where the model says so, too.
    """
    return Workload(
        RequestSpec(
            f"req-{i:02d}", 0, 20 + 13 * i % 26, min(12 + 11 * i % 28, max_cap),
            eos_after=eos_after if eos_after and i % 2 else None, ends_at_eos=ends_at_eos,
        )
        for i in range(num_requests)
    )  # fmt: skip


def _requests(values: Mapping[str, Any]) -> Workload:
    return staggered(
        values["requests"], values["max_cap"], values["eos_after"],
        ends_at_eos=not values["ignore_eos"],
    )  # fmt: skip


def _metrics(engine: Engine, device: Ragged, num_requests: int) -> dict[str, Metric]:
    usage = device.usage
    num_bytes = sum(copied for copied, _ in usage.admit_bytes)
    mean = num_bytes // usage.num_admits if usage.num_admits else None
    most = max((copied // admits for copied, admits in usage.admit_bytes), default=None)
    return {
        **serving_metrics(engine.ended, num_requests),
        **known({"bytes_per_admit": mean, "max_bytes_per_admit": most}),
        "steps": engine.state.step - 1,
        "admits": usage.num_admits,
        "midstream": usage.num_midstream,
        "refreshes": usage.num_refreshes,
        "masked_rows": usage.num_masked_rows,
        "tokens": sum(each.request.num_generated for each in engine.ended),
        "outcome": outcome(engine.ended, num_requests, engine.stopped),
    }


def _config(values: Mapping[str, Any], faults: frozenset[str]) -> EngineConfig:
    """Slots, and no paged KV beside them; a step has room for a prompt in every slot."""
    return EngineConfig(
        num_kv_blocks=0,
        max_num_batched_tokens=values["slots"] * (values["slot_tokens"] + 1),
        max_num_seqs=values["slots"],
        num_slots=values["slots"],
        faults=faults,
    )
