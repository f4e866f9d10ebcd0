"""Every known bug of the engine, by name; nothing is wrong unless its name is switched on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from stepscope.ingest.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Fault:
    """A bug of `scenario` that `EngineConfig(faults={name})` switches on, and what it does.

    It shows itself in the otherwise sound `variant`, under `settings` where the default ones are
    too easy on it, and on `executor` where that is not the scenario's first.
    """

    name: str
    scenario: str
    summary: str
    variant: str = "after"
    settings: Mapping[str, str] = field(default_factory=dict)
    executor: str | None = None


FCFS, SLOTS, DEVICE = "fcfs-preemption", "slot-recycling", "mix-admission"
EP, MIXED = "ep-multiplexing", "mixed-batches"

FCFS_FAULTS = (
    Fault("shortest-bucket", FCFS, "the bucket of the shortest sequences runs, not the oldest's"),
    Fault(
        "newest-first-oldest-preempted",
        FCFS,
        "the newest requests get blocks first and the oldest are preempted for them",
    ),
    Fault(
        "bucket-preemption-with-free-blocks",
        FCFS,
        "requests outside the chosen bucket are preempted though their blocks are not needed",
    ),
    Fault(
        "incompatible-requeued-on-drained-queue",
        FCFS,
        "requests of other buckets go back on the queue that is being drained: it never ends",
    ),
    Fault(
        "one-victim-then-ignored",
        FCFS,
        "one victim is preempted for a request; when that is too little, the request is dropped",
        settings={"requests": "24", "num_kv_blocks": "75", "patience": "0"},
    ),
    Fault(
        "victim-popped-instead-of-admitted",
        FCFS,
        "the front of the queue is taken out for an admission, and a victim has come there since",
        settings={
            "requests": "12",
            "urgent": "11",
            "patience": "2",
            "prompt_len": "160",
            "max_tokens": "32",
            "burst": "10",
            "gap_ms": "1500",
            "num_kv_blocks": "60",
        },
    ),
    Fault(
        "block-given-twice",
        FCFS,
        "a block that went back with a preemption goes back again at the end, whoever has it then",
        settings={"requests": "24", "num_kv_blocks": "60"},
    ),
    Fault("block-leaked", FCFS, "the last block of a request that finishes is never released"),
    Fault(
        "nobody-gives-way",
        FCFS,
        "requests that run keep their KV blocks and wait for those of the others, all of them",
        settings={"num_kv_blocks": "60"},
    ),
    Fault(
        "too-long-is-held",
        FCFS,
        "a request that is longer than the KV pool is held in the queue, not turned away",
        settings={"num_kv_blocks": "5", "prompt_len": "200", "requests": "6"},
    ),
    Fault(
        "ignored-told-as-finished",
        FCFS,
        "a request that does not fit is dropped, and told to be finished, without a cause",
        settings={"requests": "24", "num_kv_blocks": "40", "patience": "0"},
    ),
    Fault(
        "batch-full-latched",
        FCFS,
        "once the head of the queue did not fit, the batch counts as full, and nobody looks again",
    ),
    Fault(
        "preempted-ends-in-error",
        FCFS,
        "what checks a request's tokens is lost with its preemption: the next one is an error",
        settings={"requests": "24", "num_kv_blocks": "60"},
    ),
    Fault(
        "executor-dies",
        FCFS,
        "the executor dies in the middle of a step, and nobody tells the requests",
    ),
)

SLOT_FAULTS = (
    Fault(
        "skip-mirror-refresh",
        SLOTS,
        "an admission commits the host mirror without refreshing it: live slots go back in time",
        variant="before",
    ),
    Fault(
        "recycle-without-clearing",
        SLOTS,
        "a recycled slot keeps its old length: its owner reads what the one before it wrote",
    ),
    Fault(
        "masked-row-leak",
        SLOTS,
        "the token of an idle row is kept, for the request that had the slot last",
    ),
    Fault(
        "refill-when-drained",
        SLOTS,
        "a freed slot stays idle, with a queue, until every other slot is free too",
    ),
    Fault(
        "one-slot-used",
        SLOTS,
        "a request is let in when nobody runs, and nobody beside it: the other slots stay free",
    ),
    Fault(
        "token-after-eos",
        SLOTS,
        "the end of an output is not looked for: it runs on to its cap",
        settings={"eos_after": "5"},
    ),
    Fault("token-past-cap", SLOTS, "the cap is compared one token too late"),
    Fault(
        "cap-before-eos",
        SLOTS,
        "an output that ends on its cap is told to have been cut",
        settings={"eos_after": "14"},
    ),
)

MIXED_FAULTS = (
    Fault(
        "prefill-eats-the-budget",
        MIXED,
        "nothing is reserved for decodes: prompts take every token of the budget",
    ),
    Fault(
        "no-request-cap",
        MIXED,
        "the long-prefill threshold is not applied: one prompt takes all that prefills may have",
        variant="before",
    ),
    Fault(
        "reserve-for-every-seat",
        MIXED,
        "once anybody decodes, tokens are reserved for every seat: prompts get none of the budget",
        settings={"budget": "256", "requests": "8"},
    ),
    Fault(
        "reserve-not-held",
        MIXED,
        "tokens are reserved for decodes, and prompts are given them all the same",
    ),
    Fault(
        "placeholder-read-as-token",
        MIXED,
        "a decode that idled a step reads the placeholder that stands for its last token",
        variant="before",
        settings={"deferred": "true"},
    ),
    Fault(
        "token-of-partial-prefill",
        MIXED,
        "every chunk of a prompt samples a token, not only the last",
    ),
    Fault(
        "scheduled-twice",
        MIXED,
        "a request whose prompt ends in this step is taken for a decode of this step too",
    ),
    Fault(
        "victim-in-batch",
        MIXED,
        "a request may be preempted that is in this step's batch already",
        settings={"kv_blocks": "20000"},
    ),
    Fault(
        "mtp-with-mixed",
        MIXED,
        "drafts are verified in mixed batches, which cannot tell them apart, and nobody refuses",
        settings={"mtp_k": "1"},
    ),
    Fault(
        "peer-kind-from-queue",
        MIXED,
        "a rank foretells its kind from its queue and forgets the prompts that it has begun",
        variant="data-parallel",
        settings={"requests": "8", "prompt_len": "16384"},
    ),
    Fault(
        "dealt-to-one-rank",
        MIXED,
        "requests are dealt by numbers that are never updated: all but one go to the first rank",
        variant="data-parallel",
    ),
)

# What goes wrong when a mixed batch is split: a few requests of the report's sizes show it.
FEW = {"requests": "24", "max_tokens": "32"}
SPLIT_FAULTS = (
    Fault(
        "decode-overwrites-shared-view",
        MIXED,
        "the decode segment's metadata arrive in the buffers that the prefill segment still reads",
        settings=FEW,
    ),
    Fault(
        "pinned-buffer-overwritten",
        MIXED,
        "the host writes the decode segment's metadata while the prefill's are still being copied",
        settings=FEW,
    ),
    Fault(
        "lengths-not-rebased",
        MIXED,
        "the decode segment's cumulative lengths go on from the prefill segment's",
        settings=FEW,
    ),
    Fault(
        "input-ids-not-sliced",
        MIXED,
        "the decode segment is given the input_ids of the whole batch",
        settings=FEW,
    ),
    Fault(
        "slot-mapping-missing",
        MIXED,
        "the decode segment is given no slot_mapping: the first mixed batch needs one",
        settings=FEW,
    ),
    Fault(
        "mixed-taken-for-prefill",
        MIXED,
        "a mixed batch, having prompts too, is taken for a prefill, which is asked for first",
        settings=FEW,
    ),
    Fault(
        "logits-per-token",
        MIXED,
        "a mixed batch has a row of logits for every token, not for each request",
        settings=FEW,
    ),
    Fault(
        "logits-per-batch",
        MIXED,
        "a mixed batch has one row of logits, and every request samples from it",
        settings=FEW,
    ),
    Fault(
        "empty-merge-nan",
        MIXED,
        "attention to nothing, merged with attention to nothing, divides 0 by 0",
        executor="torch",
    ),
    Fault(
        "history-seen-by-chunk-end",
        MIXED,
        "a token sees the compressed history up to the end of its chunk, not up to itself",
        settings={"window": "8"},
        executor="torch",
    ),
)

DEVICE_FAULTS = (
    Fault(
        "mix-shift-wrap",
        DEVICE,
        "MIX placement shifts by 64 bits: the 23rd group of a thread wraps to another group's AIV",
        settings={"groups": "24", "threads": "1"},
    ),
    Fault(
        "lost-ring-advance",
        DEVICE,
        "a ring moves on by the task that retired, and not past those that had retired before",
        settings={"task_slots": "64"},
    ),
    Fault(
        "stale-reservation",
        DEVICE,
        "an AIV-only dispatch shows itself only once MIX admission has looked",
    ),
    Fault(
        "pop-returns-consumed-slot",
        DEVICE,
        "a ready queue gives one slot to several threads: its block runs and counts more than once",
    ),
    Fault(
        "deferred-completion-lost",
        DEVICE,
        "of the tasks that a thread finds finished in one poll only the last one retires",
    ),
    Fault(
        "left-over-mix-ignored",
        DEVICE,
        "single-core work goes on in a pass in which a MIX is left over: no group is ever free",
    ),
    Fault(
        "predicate-of-the-one-before",
        DEVICE,
        "a task reads the predicate of the one before it: switched off, and told to have run",
    ),
    Fault(
        "sync-start-in-part",
        DEVICE,
        "an all-or-nothing task starts as many of its blocks as there is room for",
        settings={"workload": "mix-starvation"},
    ),
)

EP_FAULTS = (
    Fault(
        "preambles-up-front",
        EP,
        "the head says every sequence's command before it computes the first: a deadlock",
        variant="v2-device-staging",
    ),
    Fault(
        "every-row-samples-row-0",
        EP,
        "rows of logits stay where they were computed: every sequence samples from the last one's",
        variant="v2-device-staging",
    ),
    Fault(
        "copy-on-unordered-stream",
        EP,
        "logits are copied to the host on another stream, which does not wait for them",
        variant="v2-host-staging",
    ),
    Fault(
        "slot-order-differs",
        EP,
        "the worker claims its slots in another order than the head, and does not compare",
    ),
    Fault(
        "slots-not-allocated",
        EP,
        "the worker has slot 0 alone: a command for another one is for a slot that nobody has",
    ),
    Fault(
        "compaction-on-one-side",
        EP,
        "when a request has ended, the head moves another into its slot, and the worker does not",
        settings={"stagger": "4"},
    ),
    Fault(
        "sentinel-as-slot",
        EP,
        "the slot of a request that has ended is 2^64 - 1; its low 32 bits are the word shutdown",
        settings={"stagger": "4"},
    ),
    Fault(
        "v1-head-v2-worker",
        EP,
        "the head sends no slots and the worker reads them: it takes a command for a slot",
        variant="before",
    ),
    Fault(
        "collective-at-world-size-1",
        EP,
        "nobody asks how many ranks there are: one that is alone broadcasts, to itself",
        settings={"ranks": "1"},
    ),
    Fault(
        "scratch-shared",
        EP,
        "the rows of a step share one row of scratch: the experts see the last one's for all",
    ),
    Fault(
        "full-accept-not-trimmed",
        EP,
        "after a verify that refused nothing, nothing is trimmed, and its padding stays",
        settings={"verify_width": "4"},
    ),
    Fault(
        "path-never-reached",
        EP,
        "an early return hides the fused path of the experts: rows are done one by one",
        settings={"requests": "2"},
    ),
    Fault(
        "slow-worker",
        EP,
        "the worker computes its experts at half the speed: the head waits in every all-reduce",
    ),
)
FAULTS: tuple[Fault, ...] = (
    *FCFS_FAULTS, *SLOT_FAULTS, *MIXED_FAULTS, *SPLIT_FAULTS, *DEVICE_FAULTS, *EP_FAULTS,
)  # fmt: skip
_NAMES = {fault.name: fault for fault in FAULTS}


def fault(name: str) -> Fault:
    """Return the fault of that name; ConfigError, with near matches, when there is none."""
    if name not in _NAMES:
        near = get_close_matches(name, _NAMES, n=3) or sorted(_NAMES)
        raise ConfigError(f"no fault is called {name!r}", todo=f"try {', '.join(near)}")
    return _NAMES[name]


def faults_of(scenario: str) -> tuple[Fault, ...]:
    """Return the faults that `scenario` can show."""
    return tuple(each for each in FAULTS if each.scenario == scenario)


def check_faults(names: Iterable[str]) -> None:
    """Raise ConfigError, with near matches, for a name that is no fault."""
    for name in names:
        fault(name)
