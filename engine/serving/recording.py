"""How the engine's decisions become rows of the trace."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from stepscope.engine.batch import PREFILL, Batch, Row
from stepscope.engine.clock import Clock
from stepscope.engine.executors import Digest, Execution
from stepscope.engine.plan import ConsiderBucket, Defer, Preempt, Reject
from stepscope.engine.requests.request import Request
from stepscope.engine.sites import Sites
from stepscope.engine.state import State

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

# How far into the queue it is noted that a request waits for those before it: enough to look
# at, and a queue of a million does not cost a million rows whenever its head changes.
QUEUE_DEPTH = 64
INPUT_IDS = "input_ids"  # the buffer of the tokens that a batch begins with
FORMED = (
    "step", "ts_ns", "formed_ns", "kind", "num_prefill_reqs", "num_decode_reqs",
    "num_prefill_tokens", "num_decode_tokens", "token_budget", "reserved_tokens", "num_waiting",
    "num_running", "kv_blocks_free", "kv_blocks_total", "by_rank",
)  # fmt: skip
RAN = ("dur_ns", "executed_path", "logits_rows")


class Recording:
    """Writes what happens to a recorder, stamped with the step and the time.

    A request's decision is written when it differs from the last one written about it, so the
    last one at or before a step explains why the request is not in that step's batch. `plan` is
    the generator of the policy whose decisions are told, and says where it took them.
    """

    def __init__(self, recorder: Recorder, state: State, clock: Clock) -> None:
        self._to = recorder
        self._state = state
        self._clock = clock
        self._last: dict[str, tuple[object, ...]] = {}
        self._explained: set[str] = set()
        self.plan: object = None
        self._sites = Sites()
        self._site_of: dict[str, str | None] = {}
        self._begin_step, self._end_step = recorder.in_two("steps", FORMED, RAN)
        self._step: Any = None
        self._began_ns = 0

    def arrived(self, request: Request) -> None:
        """Note that a request joined the end of the queue, at its own time of arrival."""
        self._to.lifecycle(
            self._state.step, request.arrival_ns, request.id, "arrive", None, None,
            len(self._state.waiting) - 1, request.prompt_len, request.max_tokens, 0,
            request.priority, request.deadline_ns,
        )  # fmt: skip

    def ready(self, request: Request) -> None:
        """Note that what a request waits for beside room has come, at the time when it came."""
        self._to.lifecycle(
            self._state.step, request.ready_ns, request.id, "ready", None, None,
            self._state.waiting.index(request), None, None, request.num_generated,
        )  # fmt: skip

    def event(
        self,
        request: Request,
        event: str,
        cause: str | None = None,
        by: Request | None = None,
        queue_index: int | None = None,
    ) -> None:
        """Note something else that happened to a request; a decision holds for a turn only."""
        if event != "preempt":
            self._last.pop(request.id, None)
            self._site_of.pop(request.id, None)
        self._to.lifecycle(
            self._state.step, self._clock.now_ns(), request.id, event, cause,
            by.id if by else None, queue_index, None, None, request.num_generated,
        )  # fmt: skip

    def allocation(
        self, resource: str, number: int, op: str, request: Request, generation: int
    ) -> None:
        """Note that a block or slot changed hands."""
        self._to.allocations(
            self._state.step, self._clock.now_ns(), resource, number, op, request.id, generation
        )

    def row(self, row: Row) -> None:
        """Note a row of the batch that is being formed."""
        request, number = row.request, len(self._state.batch.rows) - 1
        is_final = row.num_kv_tokens == request.num_tokens + row.num_fed_back
        is_first = row.num_computed == request.num_cached
        self._to.batch_rows(
            self._state.step, self._clock.now_ns(), number, request.id,
            row.phase, request.slot, row.num_tokens, row.num_computed,
            request.num_cached if is_first else 0, row.num_draft or None, None,
            request.prompt_len, is_final if row.phase is PREFILL else None, row.is_recompute,
        )  # fmt: skip
        if row.phase is not PREFILL and self._state.config.deferred_output:
            self._input(row, number)

    def _input(self, row: Row, number: int) -> None:
        """Note which token a decode reads: by the step that sampled it, 0 for a placeholder."""
        epoch = 0 if row.reads_placeholder else row.request.sampled_step
        self._to.accesses(
            self._state.step, self._clock.now_ns(), INPUT_IDS, number, number + 1, "read",
            "device" if row.is_deferred else "host", None, epoch,
        )  # fmt: skip

    def deferred(self, defer: Defer) -> None:
        """Note why a request is left out, unless that is what was noted last."""
        # What ran instead is named as it was then: a bucket's length grows with every step.
        known = (defer.reason, defer.resource, defer.needed, defer.available, defer.holder)
        self._explained.add(defer.request.id)
        if self._last.get(defer.request.id) == known and defer.verdict == "deferred":
            return
        self._last[defer.request.id] = known
        self._site_of[defer.request.id] = site = self._sites.of_plan(self.plan)
        self._decide(
            site, "request", defer.request.id, defer.verdict, defer.reason, defer.resource,
            defer.needed, defer.available, defer.holder or self._holder(defer.resource),
            defer.instead,
        )  # fmt: skip

    def queued(self) -> None:
        """Note, for those whom the policy did not come to, behind whom they wait."""
        queue = list(islice(self._state.waiting, QUEUE_DEPTH))
        # Where priority is the order, the first to be looked at is not the first in the queue.
        head = next((request for request in queue if request.id in self._explained), None)
        for request in queue:
            if request.id in self._explained:
                head = request
            elif head and self._last.get(request.id) != ("behind", head.id):
                self._last[request.id] = ("behind", head.id)
                self._queued_behind(request, head)
        self._explained.clear()

    def preempted(self, preempt: Preempt) -> None:
        """Note what a request was preempted for, and how many blocks were free then."""
        self._last[preempt.request.id] = ("preempted",)
        self._explained.add(preempt.request.id)
        self._site_of[preempt.request.id] = site = self._sites.of_plan(self.plan)
        self._decide(
            site, "request", preempt.request.id, "preempted", preempt.cause, preempt.resource,
            preempt.needed, self._state.kv_blocks.num_free, preempt.by.id, preempt.instead,
        )  # fmt: skip

    def admitted(self, request: Request, num_passed: int) -> None:
        """Note that a request is let in, what that takes, and how many stand before it."""
        state = self._state
        if state.kv_blocks.num_blocks:
            needed, free = state.num_blocks_to_admit(request), state.kv_blocks.num_free
            short: tuple[str, int, int] = ("kv-block", needed, free)
        elif state.slots:
            short = ("slot", 1, state.slots.num_free)
        else:
            short = ("seat", 1, state.num_free_running_slots)
        reason = (
            f"ahead of {num_passed} that stand before it"
            if num_passed
            else "the first in the queue"
        )
        site = self._sites.of_plan(self.plan)
        self._decide(site, "request", request.id, "admitted", reason, *short, None, None)

    def rejected(self, reject: Reject) -> None:
        """Note what a request was dropped for."""
        self._decide(
            self._sites.of_plan(self.plan), "request", reject.request.id, "rejected", reject.cause,
            reject.resource, reject.needed, reject.available, self._holder(reject.resource), None,
        )  # fmt: skip

    def considered(self, bucket: ConsiderBucket) -> None:
        """Note that a bucket was chosen, or passed over for which."""
        is_chosen = bucket.name == bucket.chosen
        self._decide(
            self._sites.of_plan(self.plan), "bucket", bucket.name,
            "chosen" if is_chosen else "passed-over", bucket.reason, "bucket", bucket.size, None,
            bucket.oldest.id, None if is_chosen else bucket.chosen,
        )  # fmt: skip

    def token(
        self, request: Request, token: int, sampled_step: int, digest: Digest | None = None
    ) -> None:
        """Note that a token was sampled; which one stays out of the trace, unless it is the end."""
        is_end = request.is_end(token, request.num_generated)
        self._to.outputs(
            self._state.step, self._clock.now_ns(), request.id, request.num_generated - 1,
            token if is_end else None, False, sampled_step, *(digest or ()),
        )  # fmt: skip

    def placeholder(self, request: Request) -> None:
        """Note that a token was sampled which the host does not know yet."""
        self._to.outputs(
            self._state.step, self._clock.now_ns(), request.id, request.num_generated,
            None, True, self._state.step,
        )  # fmt: skip

    def formed(self, batch: Batch, formed_ns: int) -> None:
        """Note that the step's batch is formed, and what the engine holds then."""
        state, self._began_ns = self._state, self._clock.now_ns()
        num_blocks = state.kv_blocks.num_blocks
        began_ns = self._began_ns
        self._step = self._begin_step(
            state.step, began_ns, formed_ns if formed_ns < began_ns else None, batch.kind,
            batch.num_prefill_reqs, batch.num_decode_reqs, batch.num_prefill_tokens,
            batch.num_decode_tokens, state.config.max_num_batched_tokens, batch.num_reserved,
            len(state.waiting), len(state.running),
            state.kv_blocks.num_free if num_blocks else None, num_blocks or None, batch.by_rank,
        )  # fmt: skip

    def ran(self, execution: Execution, ended_ns: int) -> None:
        """Note that the step has run, until `ended_ns`.

        A step lasts from when its row was begun, and not from when the executor was called: on a
        real clock that row took time to record, and the step would end before it did.
        """
        num_rows = execution.logits_rows
        self._end_step(
            self._step, ended_ns - self._began_ns, execution.path,
            len(execution.tokens) if num_rows is None else num_rows,
        )  # fmt: skip

    def _decide(self, site: str | None, *told: str | int | None) -> None:
        self._to.decisions(self._state.step, self._clock.now_ns(), *told, None, site)

    def _queued_behind(self, request: Request, head: Request) -> None:
        self._decide(
            self._site_of.get(head.id), "request", request.id, "deferred",
            f"waits behind {head.id}", "queue", None, None, head.id, None,
        )  # fmt: skip

    def _holder(self, resource: str | None) -> str | None:
        """Who has most of what was short; of slots of any kind, who has had one for longest."""
        running, rows = self._state.running, self._state.batch.rows
        if resource == "kv-block" and running:
            return max(running, key=lambda request: len(request.block_table)).id
        if resource == "token-budget" and rows:
            return max(rows, key=lambda row: row.num_tokens).request.id
        return running[0].id if resource in {"seat", "slot"} and running else None
