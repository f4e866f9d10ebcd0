"""Bugs of `mixed-batches`: of its scheduler, and of how a mixed batch is split."""

from __future__ import annotations

from stepscope.engine.faults.fault import Fault

MIXED = "mixed-batches"

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
        "reserve-for-max-num-seqs",
        MIXED,
        "once anybody decodes, max_num_seqs tokens are reserved: prompts get none of the budget",
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
        "tbo-with-mixed",
        MIXED,
        "two-batch overlap halves mixed batches too, as if all their rows were of one length",
        settings={"requests": "24", "max_tokens": "32", "tbo": "true"},
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
        "plans-not-cloned",
        MIXED,
        "the prefill segment has copies of its own of its metadata, but for the compress plan",
        settings=FEW | {"window": "8"},
    ),
    Fault(
        "decode-region-stale",
        MIXED,
        "the token ids of a mixed batch are written for its prompts alone: decodes find older ones",
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
        "lengths-missing",
        MIXED,
        "a mixed batch's metadata have no cu_seqlens_q of the prompts: the first one needs them",
        settings=FEW,
    ),
    Fault(
        "lengths-stale",
        MIXED,
        "the decode segment's cu_seqlens_q is not written: it reads the prefill segment's",
        settings=FEW,
    ),
    Fault(
        "mixed-taken-for-prefill",
        MIXED,
        "a mixed batch, having prompts too, is taken for a prefill: its decodes get no logits",
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
