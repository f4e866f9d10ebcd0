"""A scheduler of SGLang, called as its own loops call it, the one that overlaps steps too."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any

from stepscope.ingest.replay.scheduler_calls import Formed, Row
from stepscope.ingest.replay.script import ABORT, STOP, Asked
from stepscope.ingest.replay.sglang.building import build
from stepscope.ingest.replay.sglang.worker import ScriptedWorker

LAST = 1
"""The token that ends a request; those of `Asked.runs` begin above it."""
OWN = 1 << 32
"""Tokens from here on are those of a request of which a trace does not tell whom it is like."""
Json = dict[str, Any]


class SglangScheduler:
    """The scheduler of the installed SGLang; see `Scheduler` in `scheduler_calls.py`."""

    num_drafts = 0

    def __init__(self, config: Json) -> None:
        self.scheduler, self.unknown = build(config)
        self.scheduler.model_worker = ScriptedWorker(self.scheduler.model_worker, self._next_token)
        self._has_priorities = bool(config.get("enable_priority_scheduling"))
        self._sign = 1 if config.get("schedule_low_priority_values_first") else -1
        self._tokens: dict[str, list[int]] = {}
        self._reqs: dict[str, Any] = {}
        self._stopping: set[str] = set()
        self.is_async = bool(self.scheduler.enable_overlap)
        if self.is_async:  # what its loop sets when it begins
            self.scheduler.enable_skip_finishing_decode = True
            self.scheduler.result_queue = deque()

    def add(self, asked: Asked) -> None:
        """Make SGLang's request of it, and add it."""
        from sglang.srt.managers.io_struct import TokenizedGenerateReqInput
        from sglang.srt.sampling.sampling_params import SamplingParams

        sampling = SamplingParams(
            max_new_tokens=asked.max_tokens, temperature=0, ignore_eos=asked.ignore_eos,
            stop_token_ids=[LAST],
        )  # fmt: skip
        sampling.normalize(None)
        self._tokens[asked.request] = tokens = _tokens(asked, OWN + len(self._tokens))
        self.scheduler.handle_generate_request(TokenizedGenerateReqInput(
            rid=asked.request, input_text=None, input_ids=array("q", tokens[: asked.prompt_len]),
            input_embeds=None, mm_inputs=None, token_type_ids=None, sampling_params=sampling,
            return_logprob=False, logprob_start_len=-1, top_logprobs_num=0,
            token_ids_logprob=None, stream=False,
            priority=self._priority(asked),
        ))  # fmt: skip
        self._reqs |= {req.rid: req for req in self.scheduler.waiting_queue[-1:]}

    def _priority(self, asked: Asked) -> int | None:
        """Its priority as SGLang has it, where it looks at priorities."""
        if asked.priority is None or not self._has_priorities:
            return None
        return self._sign * asked.priority

    def ready(self, request: str) -> None:
        """No request waits for anything beside room."""

    def schedule(self, *, is_throttled: bool) -> Formed:
        """Form the next batch."""
        scheduler = self.scheduler
        plan = scheduler.get_next_batch_to_run(
            running_batch=scheduler.running_batch, last_batch=scheduler.last_batch
        )
        scheduler.running_batch, batch = plan.running_batch, plan.batch_to_run
        if not batch:
            scheduler.last_batch = None
            return Formed((), None)
        formed = Formed(tuple(_rows(batch)), batch)
        if self.is_async:
            result = scheduler.run_batch(batch)
            scheduler.result_queue.append((batch.copy(), result))
            scheduler.last_batch = batch
        return formed

    def dummy(self, began_ns: int) -> None:
        """No step of nothing is replayed."""

    def update(self, formed: Formed, tokens: Mapping[str, int], ends: Mapping[str, str]) -> None:
        """Run the batch: each request gets the token that it had, or the one that ends it."""
        batch = formed.handle
        if not batch:
            return
        for request, how in ends.items():
            if how == ABORT:
                self._abort(request)
        self._stopping = {request for request, how in ends.items() if how == STOP}
        for request in self._stopping:  # a text that is to stop it ends whoever ignores tokens
            self._reqs[request].sampling_params.ignore_eos = False
        if self.is_async:
            self._process_overlapped(batch)
        else:
            self.scheduler.process_batch_result(batch, self.scheduler.run_batch(batch))
            self.scheduler.last_batch = batch
        self._stopping = set()
        self._forget_ended()
        if not self._reqs:
            self._idle()

    def _process_overlapped(self, batch: Any) -> None:
        """Take the results of a batch that runs since it was formed.

        Its tokens are known now: when it began to run, those of the step before were not taken.
        """
        import torch

        if len(self.scheduler.result_queue) == 1 and self.scheduler.last_batch is batch:
            self.schedule(is_throttled=False)  # its loop has looked, and formed none behind it
        taken, result = self.scheduler.result_queue.popleft()
        tokens = [self._next_token(req.rid) for req in taken.reqs]
        result.next_token_ids = torch.tensor(tokens, dtype=torch.int64)
        self.scheduler.process_batch_result(taken, result)

    def propose(self, drafts: Mapping[str, int]) -> None:
        """Drafts are not replayed."""

    def abort(self, request: str) -> None:
        """Its client has gone."""
        self._abort(request)
        waiting = {req.rid for req in self.scheduler.waiting_queue}
        if not self._is_running(request) and request not in waiting:
            self._reqs.pop(request, None)

    def has_work(self) -> bool:
        """Tell whether any request is unfinished."""
        return bool(self._reqs)

    def open_requests(self) -> Sequence[str]:
        """Whom the scheduler still knows."""
        return list(self._reqs)

    def _abort(self, request: str) -> None:
        from sglang.srt.managers.io_struct import AbortReq

        self.scheduler.abort_request(AbortReq(rid=request))

    def _is_running(self, request: str) -> bool:
        scheduler = self.scheduler
        batches = (scheduler.running_batch, scheduler.last_batch)
        running = chain.from_iterable(batch.reqs for batch in batches if batch)
        chunked = getattr(scheduler, "chunked_req", None)
        return any(req.rid == request for req in chain(running, (chunked,) if chunked else ()))

    def _forget_ended(self) -> None:
        for request in [name for name, req in self._reqs.items() if req.finished()]:
            del self._reqs[request]

    def _idle(self) -> None:
        """Nobody is left: the loop goes round once with nothing to run."""
        self.schedule(is_throttled=False)
        self.scheduler.on_idle()

    def _next_token(self, request: str) -> int:
        if request in self._stopping:
            return LAST
        tokens = self._tokens[request]
        if (req := self._reqs.get(request)) is None:
            return tokens[-1]  # it has ended meanwhile, and nobody looks at its token
        at = len(req.origin_input_ids) + len(req.output_ids)
        return tokens[at] if at < len(tokens) else tokens[-1]


def _tokens(asked: Asked, own: int) -> list[int]:
    """The tokens of a request, prompt and output, as far as is told; then one of its own."""
    told = list(chain.from_iterable(repeat(token, number) for token, number in asked.runs))
    return [*told, *repeat(own, max(0, asked.prompt_len - len(told))), own]


def _rows(batch: Any) -> Sequence[Row]:
    is_extend = batch.forward_mode.is_extend()
    decodes = {req.rid for req in batch.decoding_reqs or ()} if is_extend else None
    return [
        _decode(req) if decodes is None or req.rid in decodes
        else Row(req.rid, req.extend_len, req.prefix_len, batch.chunked_req is not req)
        for req in batch.reqs
    ]  # fmt: skip


def _decode(req: Any) -> Row:
    return Row(req.rid, 1, len(req.origin_input_ids) + len(req.output_ids) - 1, samples=True)
