"""What is told of an SGLang scheduler at each of its calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from stepscope.ingest.attach.hooks import Hooks
from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.scheduler_recording import LeftOut, Step
from stepscope.ingest.attach.sglang.adapters import Adapters
from stepscope.ingest.attach.sglang.alike import Alike
from stepscope.ingest.attach.sglang.formed_rows import Rows, counts_of
from stepscope.ingest.attach.sglang.pages import Pages
from stepscope.ingest.attach.sglang.waits import COMPILING, PAUSED, Reasons, Short

RETRACTED = "retracted: the KV cache has no room for the next tokens of those that run"
PREEMPTED = "preempted: a request of higher priority takes its room"
QUEUE_FULL = "the queue takes no more"
GOES_ON = "it is in the batch again"
TURN_OF = "a turn of streaming session "
SERVER_FAILED = 500
LARGEST = 2**31 - 1
_asking: list[Any] = []
"""Whose scheduler forms a batch in this process: what admits prefills does not know it."""


class Formed(NamedTuple):
    """A step under way: its requests, and the position of the output that each is to give."""

    step: Step
    requests: list[Any]
    positions: list[int | None]
    has_drafts: bool


def asking() -> SGLangScheduler | None:
    """Give what follows the scheduler that forms a batch just now."""
    return _asking[-1] if _asking else None


class SGLangScheduler:
    """Follows one scheduler; everything here is called by the thread that runs it."""

    def __init__(self, scheduler: Any, recording: RecordedScheduler) -> None:
        self.recording = recording
        self.hooks = Hooks(recording.failed)
        self.reasons = Reasons(scheduler)
        self._scheduler = scheduler
        self._rows = Rows(scheduler)
        self._waiting: dict[str, Any] = {}
        self._running: dict[str, Any] = {}
        self._pages = Pages(scheduler, self._running)
        self._adapters = Adapters(scheduler)
        self._put_back: set[str] = set()
        self._compiling: dict[str, Any] = {}
        self._taken_by: dict[str, Short] = {}
        self._came_back: list[tuple[Any, int, Short]] = []
        self._short: tuple[int, int] | None = None
        self._places: tuple[int, int] | None = None
        self._is_forming = False
        self._alike = Alike()
        self._order: list[str] = []
        self._last: list[str] | None = None
        self._under_way: deque[Formed] = deque()

    def close(self) -> None:
        """Stop following it, and close the recording."""
        self.hooks.is_stopped = True
        self.recording.close()

    # ── requests come and go ─────────────────────────────────────────────────────────────────

    def add_request_to_queue(self, _: object, req: Any, is_retracted: bool = False) -> None:
        """Tell that a request came to the queue, or came back to it."""
        if not any(req is each for each in self._scheduler.waiting_queue[-1:]):
            return  # refused, or waiting elsewhere
        ts_ns, name = self.recording.now_ns(), req.rid
        self._waiting[name] = req
        if self._compiling.pop(name, None) is not None:
            return  # it came when its grammar began to be compiled
        self._order.append(name)
        if name not in self._rows:
            self._arrived(ts_ns, req, len(self._order) - 1)
            return
        self._running.pop(name, None)
        self._put_back.add(name)
        self._last = None
        self._came_back.append((req, len(self._order) - 1, self._why_back(name, is_retracted)))
        if not self._is_forming:
            self._tell_back(ts_ns)

    def compiling(self, req: Any) -> None:
        """Tell that a request came, and joins the queue when its grammar is compiled."""
        ts_ns = self.recording.now_ns()
        self._compiling[req.rid] = req
        self._order.append(req.rid)
        self._arrived(ts_ns, req, len(self._order) - 1)
        self.recording.left_out(ts_ns, self.reasons.new(self._uncompiled()))

    def _uncompiled(self) -> list[LeftOut]:
        return [LeftOut(name, "grammar", COMPILING) for name in self._compiling]

    def _arrived(self, ts_ns: int, req: Any, place: int | None) -> None:
        self._rows.arrived(req.rid)
        alike, num_alike = self._alike.of(req.rid, req.origin_input_ids)
        is_told = req.priority is not None and abs(req.priority) <= LARGEST
        self.recording.event(
            "arrive", req.rid, ts_ns, queue_index=place, prompt_len=len(req.origin_input_ids),
            # Of who is given up at once SGLang keeps no more what was asked for.
            max_tokens=None if req.to_finish else req.sampling_params.max_new_tokens,
            num_generated=0,
            priority=self._lower_first(req.priority) if is_told else None,
            lora=self._adapters.name_of(req.lora_id), cause=_session_of(req),
            ignore_eos=bool(req.sampling_params.ignore_eos), alike=alike, num_alike=num_alike,
        )  # fmt: skip

    def _lower_first(self, priority: int) -> int:
        """A priority as the schema has it: SGLang prefers the higher, where not told otherwise."""
        prefers_lower = self._scheduler.schedule_low_priority_values_first
        return priority if prefers_lower else -priority

    def _tell_back(self, ts_ns: int) -> None:
        """Tell who came back to the queue, and what of theirs is free again."""
        self._look_at_pages(ts_ns, [req for req, _, _ in self._came_back])
        for req, place, short in self._came_back:
            self.reasons.put_back(req.rid, short)
            self.recording.event(
                "preempt", req.rid, ts_ns, cause=short.reason, queue_index=place,
                num_generated=len(req.output_ids), by_request=short.holder,
            )  # fmt: skip
            self.recording.decided(ts_ns, "preempted", short.of(req.rid))
        self._came_back.clear()

    def _why_back(self, name: str, is_retracted: bool) -> Short:
        if is_retracted:
            return Short("kv-token", RETRACTED, *(self._short or ()))
        if (by := self._taken_by.pop(name, None)) is not None:
            return by
        return Short("pause", PAUSED)

    def preempted_for(self, by: str, requests: Iterable[Any]) -> None:
        """Note for whom others were put back: they come to the queue when all have been tried."""
        for req in requests:
            needed, available = self._places or (None, None)
            taken = Short("preemption", PREEMPTED, needed, available, by)
            self._taken_by.setdefault(req.rid, taken)

    def lacks_adapter(self, req: Any, in_use: Collection[str | None]) -> None:
        """Note whose adapter keeps it out, beside these."""
        self.reasons.lacks_adapter(req.rid, self._adapters.short(req, in_use))

    def asked_for_place(self, adder: Any) -> None:
        """Note how many more may run, before room is made for one of higher priority."""
        more = self._scheduler.get_num_allocatable_reqs(len(adder.running_batch.reqs))
        self._places = 1, max(int(more) - len(adder.can_run_list), 0)

    def short_of(self, needed: int, available: int) -> None:
        """Note how much room the next tokens need, and how much there is."""
        self._short = needed, available

    def send_abort_output(self, _: object, abort: Any, req: Any) -> None:
        """Tell that a request has ended outside of any batch, or was not let in at all."""
        ts_ns, told = self.recording.now_ns(), abort.finished_reason or {}
        cause = told.get("message") or "aborted"
        if req.rid not in self._rows:
            self._arrived(ts_ns, req, None)
            self._end(ts_ns, req, "reject", cause)
        else:
            self._end(ts_ns, req, _event_of(told.get("status_code")), cause)

    def abort_on_queued_limit(self, is_rejected: bool, req: Any) -> None:
        """Tell why a request was not let in: the queue has no place for it."""
        if is_rejected:
            places = self._scheduler.max_queued_requests - len(self._scheduler.waiting_queue)
            short = Short("queue", QUEUE_FULL, 1, max(places, 0))
            self.recording.decided(self.recording.now_ns(), "rejected", short.of(req.rid))

    def pause_generation(self, *_: object) -> None:
        """Tell those who wait that the engine is paused: it forms no batch, and looks at nobody."""
        left = [LeftOut(name, "pause", PAUSED) for name in self._order]
        self.recording.left_out(self.recording.now_ns(), self.reasons.new(left))

    # ── a batch is formed ────────────────────────────────────────────────────────────────────

    def forming(self) -> None:
        """Begin to look at who is admitted, and what keeps others from it."""
        _asking.append(self)
        self._is_forming = True
        self.reasons.begin()

    def formed(self, plan: Any) -> None:
        """Tell the batch, who was admitted, and why others were not."""
        _asking.pop()
        self._is_forming = False
        ts_ns, batch = self.recording.now_ns(), plan.batch_to_run
        queue = [*(req.rid for req in self._scheduler.waiting_queue), *self._compiling]
        admitted = {name: self._waiting.pop(name) for name in [*self._waiting] if name not in queue}
        self._running.update(admitted)
        chunked = self._scheduler.chunked_req
        back = [req for req, _, _ in self._came_back]
        held = [*back, *(batch.reqs if batch else ()), *([chunked] if chunked else ())]
        in_batch = None
        if batch and batch.reqs:
            in_batch = self._tell_batch(ts_ns, batch, admitted, len(queue))
        self._look_at_pages(ts_ns, held)
        self._tell_back(ts_ns)
        self._order = [name for name in self._order if name not in admitted]
        for req in admitted.values():
            self._tell_admitted(ts_ns, req)
        if queue != self._order:
            self.recording.queue_order(ts_ns, queue)
            self._order = queue
        self._tell_left_out(ts_ns, plan, in_batch)

    def _tell_left_out(self, ts_ns: int, plan: Any, in_batch: dict[str, None] | None) -> None:
        waiting = self.reasons.of_waiting(self._scheduler.waiting_queue)
        self.recording.left_out(ts_ns, self.reasons.new([*waiting, *self._uncompiled()]))
        if in_batch is not None:
            for name in self.reasons.went_on(in_batch):
                self.recording.decided(ts_ns, "chosen", LeftOut(name, None, GOES_ON))
            out = [req for name, req in self._running.items() if name not in in_batch]
            self.recording.left_out(ts_ns, self.reasons.new(self.reasons.of_running(out, plan)))

    def _tell_admitted(self, ts_ns: int, req: Any) -> None:
        event = "resume" if req.rid in self._put_back else "admit"
        self._put_back.discard(req.rid)
        self.reasons.forget(req.rid)
        self.recording.event(event, req.rid, ts_ns, num_generated=len(req.output_ids))

    def _tell_batch(
        self, ts_ns: int, batch: Any, admitted: dict[str, Any], num_waiting: int
    ) -> dict[str, None]:
        """Record the batch; gives who is in it, in its order."""
        rows = self._rows.of(batch, admitted, self._put_back)
        names = [row.request for row in rows]
        counts = counts_of(self._scheduler, rows, len(self._running), num_waiting)
        has_drafts = any(row.num_draft for row in rows)
        if has_drafts:
            step = self.recording.formed_drafts(ts_ns, rows, counts)
        elif counts.kind == "decode" and names == self._last:
            step = self.recording.formed_again(ts_ns, counts)
        else:
            step = self.recording.formed(ts_ns, rows, counts)
        positions = [row.position for row in rows]
        self._last = None if None in positions else names
        self._under_way.append(Formed(step, list(batch.reqs), positions, has_drafts))
        return dict.fromkeys(names)

    def _look_at_pages(self, ts_ns: int, requests: Iterable[Any]) -> None:
        self.recording.blocks(ts_ns, self._pages.changes(requests))

    # ── outputs ──────────────────────────────────────────────────────────────────────────────

    def process_batch_result(self, _: object, batch: Any, *__: object, **___: object) -> None:
        """Tell which requests gave an output, and which have ended."""
        if not batch.reqs or not self._under_way:
            return
        ts_ns, formed = self.recording.now_ns(), self._under_way.popleft()
        known = [req for req in formed.requests if req.rid in self._rows]
        if formed.has_drafts:
            gave = [self._rows.gave(req) for req in known]
            self.recording.ended_drafts(formed.step, ts_ns, gave)
            first = {each.request: each.num_outputs for each in gave if not each.position}
            self._tell_first(ts_ns, first)
        else:
            self._tell_outputs(ts_ns, formed)
        self._look_at_pages(ts_ns, known)
        for req in known:
            if req.finished():
                self._end(ts_ns, req, *_ended_by(req.finished_reason))

    def _tell_outputs(self, ts_ns: int, formed: Formed) -> None:
        without: list[str] = []
        first: dict[str, int] = {}
        for req, position in zip(formed.requests, formed.positions, strict=True):
            if position is None:
                continue
            if len(req.output_ids) <= position:
                without.append(req.rid)
            elif position == 0:
                first[req.rid] = 1
        self.recording.ended(formed.step, ts_ns, without)
        self._tell_first(ts_ns, first)
        if without:
            self._last = None

    def _tell_first(self, ts_ns: int, given: Mapping[str, int]) -> None:
        """Tell who got its first tokens, of those who were given so many."""
        first = [(name, "first-token", num, None) for name, num in given.items() if num]
        if first:
            self.recording.events(ts_ns, first)

    def _end(self, ts_ns: int, req: Any, event: str, cause: str) -> None:
        name = req.rid
        self._waiting.pop(name, None)
        self._running.pop(name, None)
        self._compiling.pop(name, None)
        self._order = [each for each in self._order if each != name]
        self._put_back.discard(name)
        self._taken_by.pop(name, None)
        self.reasons.forget(name)
        self._rows.forget(name)
        self._look_at_pages(ts_ns, [req])
        alike, num_alike = self._alike.of(name, [*req.origin_input_ids, *req.output_ids])
        self.recording.event(
            event, name, ts_ns, cause=cause, num_generated=len(req.output_ids), alike=alike,
            num_alike=num_alike,
        )  # fmt: skip


def _session_of(req: Any) -> str | None:
    """Of a turn of a session that keeps its pages: which session's."""
    session = getattr(req, "session", None)
    return f"{TURN_OF}{session.session_id}" if session and session.streaming else None


def _ended_by(reason: Any) -> tuple[str, str]:
    """What happened to a request that has ended in a batch, and why."""
    kind = type(reason).__name__
    if kind != "FINISH_ABORT":
        return "finish", kind.lower()
    return _event_of(reason.status_code), reason.message


def _event_of(status: Any) -> str:
    """An end that the client asked for is an abort; one with a server's failure, an error."""
    return "error" if status is not None and int(status) >= SERVER_FAILED else "abort"
