"""Bugs of `fcfs-preemption`: buckets, preemption, and KV blocks that change hands."""

from __future__ import annotations

from stepscope.engine.faults.fault import Fault

FCFS = "fcfs-preemption"

# Few blocks, and clients that send 16 requests at a time, 4 s apart: lengths differ by then.
BURSTS = {
    "burst": "16", "gap_ms": "4000", "prompt_len": "64", "num_kv_blocks": "120", "block_size": "32",
}  # fmt: skip

FCFS_FAULTS = (
    Fault(
        "completions-in-buckets",
        FCFS,
        "completions run a bucket at a time as well, though a decode is one token at any length",
    ),
    Fault(
        "shortest-bucket",
        FCFS,
        "the bucket of the shortest sequences runs, not the oldest's",
        settings={**BURSTS, "completions": "bucketed"},
    ),
    Fault(
        "newest-first-oldest-preempted",
        FCFS,
        "the newest requests get blocks first and the oldest are preempted for them",
    ),
    Fault(
        "bucket-preemption-with-free-blocks",
        FCFS,
        "requests outside the chosen bucket are preempted though their blocks are not needed",
        settings={**BURSTS, "completions": "bucketed"},
    ),
    Fault(
        "incompatible-requeued-on-drained-queue",
        FCFS,
        "requests of other buckets go back on the queue that is being drained: it never ends",
        settings={"images": "every-4"},
    ),
    Fault(
        "one-victim-then-ignored",
        FCFS,
        "one victim is preempted for a request; when that is too little, the request is dropped",
        settings={**BURSTS, "requests": "24", "num_kv_blocks": "75", "patience": "0"},
    ),
    Fault(
        "victim-popped-instead-of-admitted",
        FCFS,
        "the front of the queue is taken out for an admission, and a victim has come there since",
        settings={
            **BURSTS,
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
        settings={**BURSTS, "requests": "24", "num_kv_blocks": "60"},
    ),
    Fault("block-leaked", FCFS, "the last block of a request that finishes is never released"),
    Fault(
        "nobody-gives-way",
        FCFS,
        "requests that run keep their KV blocks and wait for those of the others, all of them",
        settings={**BURSTS, "num_kv_blocks": "60"},
    ),
    Fault(
        "too-long-is-held",
        FCFS,
        "a request that is longer than the KV pool is held in the queue, not turned away",
        settings={**BURSTS, "num_kv_blocks": "5", "prompt_len": "200", "requests": "6"},
    ),
    Fault(
        "ignored-told-as-finished",
        FCFS,
        "a request that does not fit is dropped, and told to be finished, without a cause",
        settings={**BURSTS, "requests": "24", "num_kv_blocks": "40", "patience": "0"},
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
        settings={**BURSTS, "requests": "24", "num_kv_blocks": "60"},
    ),
    Fault(
        "executor-dies",
        FCFS,
        "the executor dies in the middle of a step, and nobody tells the requests",
    ),
)
