"""What is put around a vLLM scheduler's calls, and what is told at each of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from stepscope.ingest.attach.hooks import Hooks, is_called_by
from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.vllm.block_pool import KVBlocks
from stepscope.ingest.attach.vllm.engine_config import FOLLOWED
from stepscope.ingest.attach.vllm.formed_batches import (
    NOT_TOLD,
    Batches,
    Formed,
    tell_outputs,
    tell_several,
)
from stepscope.ingest.attach.vllm.model_runs import RAN, UNKNOWN
from stepscope.ingest.attach.vllm.preemptions import Preemptions
from stepscope.ingest.attach.vllm.request_events import RequestEvents
from stepscope.ingest.attach.vllm.waiting.left_behind import LeftBehind
from stepscope.ingest.attach.vllm.waiting.line import WaitingLine
from stepscope.ingest.attach.vllm.waiting.watched_call import WatchedCall
from stepscope.ingest.attach.vllm.waiting.why_left_out import Call
from stepscope.ingest.attach.watchdog import Watchdog
from stepscope.ingest.recording.forms.texts import places_left

_new = tuple.__new__
"""Makes a named tuple without the function of Python's that its class has for that."""
STEP = ("schedule", "update_from_output")
"""A scheduler's functions that are called in each step."""


class AttachedScheduler:
    """Follows one scheduler; everything here is called by the thread that runs it."""

    def __init__(self, scheduler: Any, recording: RecordedScheduler) -> None:
        self.recording, self._now_ns = recording, recording.now_ns
        self.hooks = Hooks(recording.failed)
        self.watchdog: Watchdog | None = None
        self._scheduler = scheduler
        self._line = WaitingLine(scheduler)
        self._blocks = KVBlocks(scheduler.kv_cache_manager, self.hooks)
        self._batches = Batches(scheduler, recording)
        self._left = LeftBehind(scheduler, self._line, recording)
        self._watched = WatchedCall(scheduler, self._line, self._blocks, self.hooks, self._now_ns)
        self._under_way: deque[Formed] = deque()
        self._watches_sessions = False
        self._preemptions = Preemptions(scheduler, self._blocks)
        self._events = RequestEvents(
            scheduler, recording, self._line, self._left, self._batches, self._preemptions
        )
        self._hook()

    def close(self) -> None:
        """Stop following it, and close the recording."""
        self.hooks.is_stopped = True
        if self.watchdog is not None:
            self.watchdog.stop()
        self.recording.close()

    def ran_dummy(self, began_ns: int) -> None:
        """Tell a step of nothing, which a rank ran so that others need not wait for it."""
        self.recording.dummy(began_ns, self._now_ns())

    # ── hooks ────────────────────────────────────────────────────────────────────────────────

    def _hook(self) -> None:
        def around(name: str, **ours: Callable[..., None] | None) -> None:
            self.hooks.around(self._scheduler, name, FOLLOWED["scheduler"][name], **ours)

        takes = FOLLOWED["scheduler"]
        # What is called once a step, or for each request, is one function of ours, and not three.
        for name, first, make in (
            ("add_request", takes["add_request"], self._adding),
            ("_free_request", takes["_free_request"], self._ending),
            ("schedule", (), self._scheduling),
            ("update_from_output", takes["update_from_output"], self._updating),
        ):
            self.hooks.instead(self._scheduler, name, first, make)
        self._preemptions.watch(self.hooks, after=self._events.was_preempted)
        around("finish_requests", after=self._flushed)
        around("shutdown", before=self.close)
        for name, told in (
            ("reset_prefix_cache", self._flushed),
            ("set_pause_state", self._paused),
        ):
            if hasattr(self._scheduler, name):
                self.hooks.around(self._scheduler, name, after=told)

    def _watch_sessions(self) -> None:
        """From the first request on whose input may go on: each that ends is asked for then."""
        self._watches_sessions = True
        if hasattr(self._scheduler, name := "_handle_stopped_request"):
            self.hooks.around(self._scheduler, name, ("request",), after=self._events.was_stopped)

    # ── requests come and go ─────────────────────────────────────────────────────────────────

    def _adding(self, add: Callable[..., Any]) -> Callable[..., Any]:
        hooks = self.hooks

        def hooked(request: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                was_known = request.request_id in self._scheduler.requests
            except Exception as error:
                hooks.stop(error)
            result = add(request, *args, **kwargs)
            try:
                if not hooks.is_stopped:
                    self._added(request, was_known=was_known)
            except Exception as error:
                hooks.stop(error)
            return result

        return hooked

    def _ending(self, free: Callable[..., Any]) -> Callable[..., Any]:
        hooks, ended, blocks = self.hooks, self._events.ended, self._blocks
        # A connector may free what is not the request's that ends.
        has_connector = getattr(self._scheduler, "connector", None) is not None
        group = () if has_connector else blocks.only_group

        def hooked(request: Any, *args: Any, **kwargs: Any) -> Any:
            if hooks.is_stopped:
                return free(request, *args, **kwargs)
            try:
                ended.append((request, request.status))
                if group:
                    blocks.acts_for = request.request_id, *group
            except Exception as error:
                hooks.stop(error)
            try:
                return free(request, *args, **kwargs)
            finally:
                blocks.acts_for = None

        return hooked

    def _added(self, request: Any, *, was_known: bool) -> None:
        if was_known or request.request_id not in self._scheduler.requests:
            self._flushed()
            return
        lora, line = getattr(request, "lora_request", None), self._line
        self.recording.arrived(
            self._now_ns(), request.request_id,
            line.enter(request) if line.is_sorted else None, request.num_prompt_tokens,
            request.max_tokens, request.priority, getattr(request, "stepscope_external_id", None),
            getattr(lora, "lora_name", None),
        )  # fmt: skip
        self._left.came(request.request_id)
        if getattr(request, "resumable", False) and not self._watches_sessions:
            self._watch_sessions()

    def _paused(self, _: object) -> None:
        self._left.tell_paused(self._now_ns())

    # ── a call of schedule() ─────────────────────────────────────────────────────────────────

    def _scheduling(self, schedule: Callable[..., Any]) -> Callable[..., Any]:  # noqa: C901 - one function, as it says
        """A batch is formed. Most are the one before, one token on, with nobody waiting.

        A forward pass leaves nothing of ours in the processor's caches, so that it is the functions
        which run in a step that cost, and the objects that they look up: hence few are called here,
        none for a few lines, and what does not change is looked up once.
        """
        hooks, scheduler, blocks, left = self.hooks, self._scheduler, self._blocks, self._left
        now_ns, count_free, waiting = self._now_ns, blocks.count_free, self._line.counts
        batches, watched, events = self._batches, self._watched, self._events
        preempted = events.preempted
        recording, under_way = self.recording, self._under_way
        begin = watched.at_begin()

        def hooked(*args: Any, **kwargs: Any) -> Any:
            if begin is not None:
                hooks.safely(begin, args[0] if args else kwargs.get("throttle_prefills"))
            blocks.asks_later = blocks.is_told
            output = schedule(*args, **kwargs)
            blocks.asks_later = False
            if hooks.is_stopped:
                return output
            try:
                if blocks.changes:
                    blocks.find_owners(output)
                ts_ns, names = now_ns(), [*output.num_scheduled_tokens]
                num, num_waiting, num_running = len(names), 0, len(scheduler.running)
                for count in waiting:
                    num_waiting += count()
                room = (
                    scheduler.max_num_scheduled_tokens, num_waiting, num_running, count_free(),
                    blocks.num_blocks, blocks.num_cached if blocks.has_cache else None,
                )  # fmt: skip
                has_other = batches.prefilling or output.scheduled_spec_decode_tokens
                left_at = None if has_other else places_left(batches.names, names)
                is_quiet = not (
                    num_waiting
                    or num != num_running
                    or watched.call.looked
                    or preempted
                    or left.order is not None
                    or watched.is_blind
                )
                if left_at is not None:
                    counts = "decode", 0, num, 0, output.total_num_scheduled_tokens, *room, None
                    step = recording.formed_again(ts_ns, counts, left_at, names)
                    batches.names = names
                    formed = output, step, (), num, events.num_disturbed, False
                    under_way.append(_new(Formed, formed))
                elif is_quiet:
                    under_way.append(batches.tell(ts_ns, output, events.num_disturbed, room))
                if not is_quiet:
                    changed = None if left_at is not None else room
                    self._tell_what_changed(ts_ns, output, changed, num_waiting)
                elif blocks.changes:
                    recording.blocks(ts_ns, blocks.changes)
                    blocks.changes.clear()
            except Exception as error:
                hooks.stop(error)
            return output

        return hooked

    def _tell_what_changed(
        self, ts_ns: int, output: Any, room: tuple[Any, ...] | None, num_waiting: int
    ) -> None:
        """Tell the batch, unless that is the same as before (`room` is None then), who was admitted
        or preempted, and why others were left out: what one call decides has one time, of when it
        looked at the first that waits. vLLM takes its own at the call's begin.
        """
        watched, scheduled, events = self._watched, output.num_scheduled_tokens, self._events
        preempted, call = events.preempted, watched.call
        admitted = watched.end(output, [each.reason.request for each in preempted])
        for request in admitted:
            name = request.request_id
            self._batches.prefilling[name] = self._preemptions.lost.get(name, 0), True
        if room is not None:
            formed = self._batches.tell(ts_ns, output, events.num_disturbed, room)
            self._under_way.append(formed)
        ts_ns = call.began_ns or ts_ns
        if self._blocks.changes:
            self._tell_blocks(ts_ns)
        if preempted:
            events.tell_preempted(ts_ns)
        if admitted:
            events.tell_admitted(ts_ns, admitted)
        if num_waiting or self._left.order is not None or len(call.looked) > 1:
            self._left.tell_order(ts_ns, call.passed)
        if len(scheduled) != len(self._scheduler.running):
            self._left.tell_running(ts_ns, call, scheduled)
        if num_waiting:
            self._left.tell_waiting(ts_ns, call)
        if call.looked:
            watched.call = Call()

    # ── outputs ──────────────────────────────────────────────────────────────────────────────

    def _updating(self, update: Callable[..., Any]) -> Callable[..., Any]:
        """Outputs of a batch are taken: most often one of each of its requests."""
        hooks, now_ns, recording = self.hooks, self._now_ns, self.recording
        under_way, events, blocks = self._under_way, self._events, self._blocks
        ended, put_back = events.ended, events.put_back

        def hooked(scheduler_output: Any, model_runner_output: Any, *args: Any, **more: Any) -> Any:
            result = update(scheduler_output, model_runner_output, *args, **more)
            if hooks.is_stopped:
                return result
            try:
                ts_ns, num_outputs = now_ns(), 0
                sent = result.values() if result else ()
                for some in sent:
                    num_outputs += len(some.outputs)
                formed = under_way[0] if under_way else NOT_TOLD
                is_as_expected = (
                    formed.output is scheduler_output
                    and num_outputs == formed.num_outputs
                    and formed.num_disturbed == events.num_disturbed
                )
                if is_as_expected and not formed.rows:  # each request goes on, and gave one
                    del under_way[0]
                    how = getattr(model_runner_output, RAN, UNKNOWN)
                    recording.ended(formed.step, ts_ns, (), *how)
                else:
                    self._tell_outputs(ts_ns, sent, scheduler_output, model_runner_output)
                if ended:
                    events.tell_ended(ts_ns)
                if put_back:
                    events.tell_put_back(ts_ns, self._watched.call.passed)
                if blocks.changes:
                    recording.blocks(ts_ns, blocks.changes)
                    blocks.changes.clear()
            except Exception as error:
                hooks.stop(error)
            return result

        return hooked

    def _tell_outputs(self, ts_ns: int, sent: Any, output: Any, model_output: Any) -> None:
        if (formed := self._taken(output)) is None:
            return
        how = getattr(model_output, RAN, UNKNOWN)
        if formed.has_drafts:
            tell_several(self.recording, ts_ns, formed, sent, how, self._events.find)
            return
        num_outputs = sum(len(some.outputs) for some in sent)
        is_as_expected = (
            formed.num_disturbed == self._events.num_disturbed and num_outputs == formed.num_outputs
        )
        tell_outputs(self.recording, ts_ns, formed, sent, how, is_as_expected=is_as_expected)

    def _taken(self, output: Any) -> Formed | None:
        """Take the batch of these outputs from those under way."""
        for place, each in enumerate(self._under_way):
            if each.output is output:
                del self._under_way[place]
                return each
        return None

    # ── what is recorded ─────────────────────────────────────────────────────────────────────

    def _flushed(self, _: object = None) -> None:
        """Tell what happened outside of a step's two calls; what happens in them they tell."""
        if is_called_by(self._scheduler, STEP):
            return
        ts_ns = self._now_ns()
        self._events.tell_preempted(ts_ns)
        if self._events.ended:
            self._events.tell_ended(ts_ns)
        self._tell_blocks(ts_ns)

    def _tell_blocks(self, ts_ns: int) -> None:
        if self._blocks.changes:
            self.recording.blocks(ts_ns, self._blocks.changes)
            self._blocks.changes.clear()
