"""`mixed-batches`: prompts and decodes in one batch, and who gets the tokens of its budget.

## What happened
An engine learned to put chunks of prompts and decodes into one batch, so that nobody's output has
to stand still while others' prompts are computed. It was switched on, and almost no batch was
mixed: of about a thousand steps 494 were prefill, 2 mixed, 500 decode. Prompts were scheduled
first, and what one of them left of the budget of 2,048 tokens the next one took. A request that had
its first token got the second when the last prompt of all was done.

The repair reserves the decodes' tokens before prompts get any,
`reserve = min(min(decodes, max_num_seqs) x (drafts + 1), budget)`, and prompts have the rest. Rows
are still laid out `[prefill | decode]`; with the feature off nothing is reserved and nothing is
mixed. Then 3 steps were prefill and all others mixed, such as 2 prompts + 114 decodes = 1,934 + 114
tokens.

Of gaps between tokens the report says nothing. Here the longest is 15.44 s before and 0.038 s after
the repair, as `record mixed-batches --variant all` prints. The 99th percentile, 0.026 and 0.038 s,
does not tell the two apart: 239 of 256 requests have one long gap each, of 511.

## The workload
`report`: 256 requests, all there from the start, 4,096 prompt and 512 completion tokens each;
budget 2,048, no prompt over 1,792 in a step, 256 run at a time, KV for all of them.
`concurrent-2048`: 2,048 requests of 8,192 and 1,024 tokens; `v4`: 512 of them; `closed-loop`: 256
clients who send four requests each, the next when the last is answered, as load generators do.
Times are a roofline of DeepSeek-R1 in FP8 on eight MI300X (5.3 TB/s and 2.6 dense FP8 PFLOP/s
each): shapes and ratios are the report's, milliseconds are not; its own steps took ten times as
long.

A mixed batch costs more than its tokens: with the backend `v4` each segment runs the projections of
attention, and the host waits once, until the prefill segment's metadata have been copied. `mla`
splits attention alone; `mha` takes no mixed batch, and raises when the first one comes. A `budget`
below `max_num_seqs` leaves decodes out: they are carried over, in order. With `tbo` batches of one
phase run as two halves that overlap, and mixed ones do not; the costs know no communication, so
nothing is won by it here.

## The variants
- `before`: mixed batches and no reserve; `after`: with it.
- `decode-first`: decodes take their tokens, and their places in the batch, before prompts do, as in
  vLLM; the reserve has the same effect on who runs when, and leaves prompts first in the batch.
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
- `segments`: a mixed batch runs as two, each with lengths of its own; so do two halves.
- `accesses` of steps in segments: the buffers through which `cu_seqlens_q`, `input_ids`,
  `positions`, `slot_mapping`, `block_tables` and, with a `window`, `compress_plan` get to the
  device, by the segment that they were written for (`epoch`).
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
  `reserve-for-max-num-seqs`: `reserved_tokens` is the whole budget, with prompts waiting (STV005);
  `reserve-not-held`: prompts take more than `token_budget` less `reserved_tokens` (BAT003);
  `placeholder-read-as-token` (of `before`, deferred): a decode that idled reads epoch 0 (EQV002);
  `token-of-partial-prefill`: `outputs` of chunks that are not final (BAT005);
  `scheduled-twice`: a prompt's last chunk and a decode of it in one batch (BAT004);
  `victim-in-batch`: a `preempt` of somebody who has a row in that step (BAT004);
  `mtp-with-mixed`: drafts in mixed batches, path `simulated-mixed+mtp` (BAT010);
  `tbo-with-mixed` (with `--set tbo=true`): halves of mixed batches, path `simulated-mixed+tbo`
  (BAT010), cut where the rows are not (BAT007, BAT008);
  `peer-kind-from-queue` (of `data-parallel`): one rank runs a prefill, the other a decode (COL009);
  `dealt-to-one-rank` (of `data-parallel`): one rank has nearly all requests (COL010).
- or of how a mixed batch is split, each in `segments`, `steps` or `accesses` of mixed steps:
  `lengths-not-rebased`: the decode segment's `first_cu_len` is not 0 (BAT007);
  `input-ids-not-sliced`: its `input_ids_len` is that of the whole batch (BAT008);
  `slot-mapping-missing`: its `slot_mapping_len` is null (BAT009);
  `lengths-missing`: the prefill segment's `last_cu_len` is null (BAT009);
  `lengths-stale`: segment 1 reads `cu_seqlens_q` of segment 0, or of an earlier step (BUF002);
  `mixed-taken-for-prefill`: one segment, and the path of a prefill (BAT010), which computes logits
  for the prompts alone (BAT006): decodes get no token in mixed steps, and are run again;
  `logits-per-token`, `logits-per-batch`: `logits_rows` are not those of the sequences (BAT006);
  `decode-overwrites-shared-view`: segment 0 reads an epoch that was written for segment 1 (BUF002);
  `plans-not-cloned` (with `--set window=8`): the same, of the compress plan alone (BUF002);
  `decode-region-stale`: segment 1 reads `input_ids` of segment 0, or of an earlier step (BUF002);
  `pinned-buffer-overwritten`: the host writes `pinned` fields and has not waited for the copies
  (BUF001); what arrives is wrong behind long chunks alone, `--set budget=1024` hides it.

## On a real decoder
`--executor torch` computes the same on a small decoder with weights of `--seed`, in real time, at
sizes in proportion: 12 requests of 64 and 8 tokens, budget 32, no prompt over 28 in a step. Every
output is compared with that of its request alone, and `equal_to_solo` is 12/12 in every variant but
`data-parallel`, which runs on costs alone. Drafts are looked up in what the request has said. In
`outputs`, `digest` and `solo_digest` differ from the first wrong token on (EQV001, EQV003).

The faults of the split do what they would: metadata that do not fit stop a mixed step with one
line, the others change tokens, and under `mixed-taken-for-prefill` tokens come late, all the same.
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

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from stepscope.engine.clock import VirtualClock
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.runs.metrics import kind_metrics, serving_metrics, token_metrics
from stepscope.engine.runs.outcome import outcome
from stepscope.engine.runs.scenario import (
    DEFAULTS,
    Options,
    RunResult,
    Setting,
    as_given,
    executor_of,
    recorder_for,
    settled,
)
from stepscope.engine.runs.simulated_run import run_for
from stepscope.engine.scenarios.mixed_setups import (
    COST,
    SMALL,
    VARIANTS,
    engine_config,
    model_config,
    priced,
    scheduler_of,
    settings,
    shares_of,
    workload_of,
)
from stepscope.engine.serving.data_parallel import LockStep
from stepscope.engine.serving.engine import Engine
from stepscope.engine.serving.observing import observer_of
from stepscope.engine.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class MixedBatches:
    """Report 001; its page is the module's docstring."""

    name: str = "mixed-batches"
    summary: str = "prompts and decodes in one batch: who gets the tokens of its budget"
    variants: tuple[str, ...] = tuple(VARIANTS)
    settings: Mapping[str, Setting] = field(default_factory=settings)
    executors: tuple[str, ...] = ("simulated", "torch")
    columns: tuple[str, ...] = (
        "prefill_steps", "mixed_steps", "decode_steps", "first_mixed", "worst_gap_s", "p99_gap_s",
        "median_request_worst_gap_s", "requests_stalled", "median_ttft_s", "tokens_per_s",
        "equal_to_solo", "makespan_s", "outcome",
    )  # fmt: skip

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Run one variant until every request has ended; the seed is that of drafts and weights."""
        executor = executor_of(self, options)
        if not executor_kind(executor).is_priced:
            options = replace(options, settings={**SMALL, **options.settings})
        values = settled(self, variant, options)
        asked = Workload.of(options.workload) if options.workload else workload_of(values)
        config = engine_config(VARIANTS[variant], values, asked, options.faults)
        scheduler = scheduler_of(VARIANTS[variant], values, config)
        shares = shares_of(asked, VARIANTS[variant].num_ranks, executor, options.faults)
        cost = options.cost or COST
        run = run_for(executor, options, cost, model_config(values, options.seed), asked)
        described = {
            "engine": config.as_dict() | {"refuses_mixed_drafts": True, "refuses_mixed_tbo": True},
            "scheduler": asdict(scheduler) | {"faults": sorted(scheduler.faults)},
            **as_given(values, options), **run.described,
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
                    run.paged(config, priced(cost, config, values, options.seed)),
                    VirtualClock() if rank else run.clock,
                    recorders[rank],
                    observer_of(options.observer, rank),
                )
                for rank, share in enumerate(shares)
            ]  # fmt: skip
            if len(engines) > 1:
                LockStep(engines, scheduler).run()
            else:
                run.serve(engines[0], recorders[0])
        ended = [each for engine in engines for each in engine.ended]
        stopped = next((engine.stopped for engine in engines if engine.stopped), None)
        metrics = {
            **serving_metrics(ended, len(asked)),
            **kind_metrics(engines[0].kinds),
            **token_metrics(engines),
            **run.metrics(engines[0]),
            "outcome": outcome(ended, len(asked), stopped),
        }
        return RunResult(self.name, variant, out, metrics, stopped)
