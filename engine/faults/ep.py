"""Bugs of `ep-multiplexing`: of the protocol, the slots, and the paths of experts."""

from __future__ import annotations

from stepscope.engine.faults.fault import Fault

EP = "ep-multiplexing"

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
        "slot-order-refused",
        EP,
        "the worker claims its slots in another order than the head, compares, and goes no further",
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
        "v2-head-v1-worker",
        EP,
        "the head sends slots and the worker reads none: it takes a slot for a token to decode",
    ),
    Fault(
        "collective-at-world-size-1",
        EP,
        "nobody asks how many ranks there are: one that is alone dies of its first broadcast",
        settings={"ranks": "1"},
    ),
    Fault(
        "state-not-cleared",
        EP,
        "a slot keeps its recurrent state: the next sequence begins with what the last one left",
        settings={"requests": "8"},
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
        settings={"verify_width": "4", "prompt_len": "8", "max_tokens": "32"},
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
