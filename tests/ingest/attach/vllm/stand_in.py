"""vLLM's scheduler in small: the objects, names and order of calls that its adapter follows.

Where each is in vLLM 0.32, below `vllm/v1/core`: `sched/scheduler.py`, `sched/request_queue.py`;
the pool of blocks and who hands them out are in `kv_stand_in.py`. A request is a plain object
that says itself what it is short of; nothing is computed.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

from tests.ingest.attach.vllm.kv_stand_in import KVCacheManager

Status = Enum(
    "Status",
    "WAITING WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR WAITING_FOR_REMOTE_KVS "
    "WAITING_FOR_STREAMING_REQ RUNNING PREEMPTED FINISHED_STOPPED FINISHED_LENGTH_CAPPED "
    "FINISHED_ABORTED FINISHED_ERROR",
)
Pause = Enum("Pause", "UNPAUSED PAUSED_NEW PAUSED_ALL")


@dataclass(frozen=True)
class LoRARequest:
    lora_name: str


@dataclass(eq=False)
class Request:
    """A request; `is_blocked` keeps it from being ready, `contents` names what its blocks hold."""

    request_id: str
    num_prompt_tokens: int = 4
    max_tokens: int = 3
    priority: int = 0
    arrival_time: float = 0.0
    status: Any = Status.WAITING
    is_blocked: bool = False
    contents: tuple[str, ...] = ()
    lora_request: Any = None
    mm_features: tuple[str, ...] = ()
    has_encoder_inputs: bool = False
    resumable: bool = False
    num_computed_tokens: int = 0
    num_output_tokens: int = 0
    num_stale_output_tokens: int = 0
    drop_stale_output: bool = False
    num_output_placeholders: int = 0
    is_prefill_chunk: bool = False
    pooling_params: Any = None
    spec_token_ids: list[int] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        return self.num_prompt_tokens + self.num_output_tokens

    @property
    def num_tokens_with_spec(self) -> int:
        return self.num_tokens + len(self.spec_token_ids)

    def __lt__(self, other: Request) -> bool:
        return self._key < other._key

    @property
    def _key(self) -> tuple[int, float, str]:
        return self.priority, self.arrival_time, self.request_id


class FCFSRequestQueue(deque[Request]):
    def add_request(self, request: Request) -> None:
        self.append(request)

    def peek_request(self) -> Request:
        return self[0]

    def pop_request(self) -> Request:
        return self.popleft()

    def prepend_request(self, request: Request) -> None:
        self.appendleft(request)

    def prepend_requests(self, requests: Iterable[Request]) -> None:
        self.extendleft(requests)


class PriorityRequestQueue(list[Request]):
    def add_request(self, request: Request) -> None:
        insort(self, request)

    def peek_request(self) -> Request:
        return self[0]

    def pop_request(self) -> Request:
        return self.pop(0)

    prepend_request = add_request

    def prepend_requests(self, requests: Iterable[Request]) -> None:
        for request in requests:
            self.add_request(request)


class Scheduler:
    """Decides as vLLM's does; what it is short of beside blocks are settings, given by name."""

    def __init__(self, *, num_blocks: int = 16, block_size: int = 4, max_num_seqs: int = 4,
                 budget: int = 16, policy: str = "fcfs", caches: bool = False,
                 num_ranks: int = 1, **more: Any) -> None:  # fmt: skip
        self.max_model_len, self.max_num_scheduled_tokens = 64, budget
        self.max_num_running_reqs, self.policy = max_num_seqs, policy
        self.scheduler_config = SimpleNamespace(
            enable_chunked_prefill=True, max_num_batched_tokens=budget, max_num_seqs=max_num_seqs
        )
        self.cache_config = SimpleNamespace(block_size=block_size)
        self.vllm_config = SimpleNamespace(
            parallel_config=SimpleNamespace(
                pipeline_parallel_size=1, data_parallel_size=num_ranks
            ),
            speculative_config=None, scheduler_config=self.scheduler_config,
        )  # fmt: skip
        self.lora_config: Any = None
        self.connector: Any = None
        self.ec_connector: Any = None
        self.max_num_encoder_input_tokens, self.need_mamba_block_aligned_split = 0, False
        self.requests: dict[str, Request] = {}
        self.running: list[Request] = []
        self.waiting: Any = PriorityRequestQueue() if policy == "priority" else FCFSRequestQueue()
        self.kv_cache_manager = KVCacheManager(num_blocks, block_size, caches=caches)
        self._pause_state, self.is_async = Pause.UNPAUSED, False
        self.current_step = self.num_spec_tokens = 0
        vars(self).update(more)

    def add_request(self, request: Request) -> None:
        self.waiting.add_request(request)
        self.requests[request.request_id] = request

    def schedule(self, throttle_prefills: bool = False) -> Any:  # noqa: C901, PLR0912, PLR0915 - the adapter reads its locals, as it is one function in vLLM
        self.current_step += 1
        num_scheduled_tokens: dict[str, int] = {}
        new_blocks: dict[str, Any] = {}
        preempted_reqs: list[Request] = []
        token_budget = self.max_num_scheduled_tokens
        if self._pause_state == Pause.PAUSED_ALL:
            token_budget = 0
        defer_prefills = throttle_prefills and any(not r.is_prefill_chunk for r in self.running)
        req_index = 0
        while req_index < len(self.running) and token_budget > 0:
            request = self.running[req_index]
            num_new_tokens = request.num_tokens_with_spec + request.num_output_placeholders
            num_new_tokens = min(num_new_tokens - request.num_computed_tokens, token_budget)
            end = request.num_computed_tokens + 2 - request.num_output_placeholders
            is_last = end >= request.num_prompt_tokens + request.max_tokens
            is_held = defer_prefills and request.is_prefill_chunk
            is_held |= bool(request.num_output_placeholders) and is_last
            if is_held or self._lacks_encoder(request) or num_new_tokens <= 0:
                req_index += 1
                continue
            while (new := self.kv_cache_manager.allocate_slots(request, num_new_tokens)) is None:
                preempted_req = self.running.pop()
                self._preempt_request(preempted_req, 0.0)
                preempted_reqs.append(preempted_req)
                if preempted_req is request:
                    break
            if new is None:
                break
            num_scheduled_tokens[request.request_id] = num_new_tokens
            new_blocks[request.request_id] = new.blocks
            token_budget -= num_new_tokens
            req_index += 1
        loras = {each.lora_request for each in self.running if each.lora_request}
        skipped: deque[Request] = deque()
        while self.waiting and token_budget > 0 and not preempted_reqs:
            is_full = len(self.running) >= self.max_num_running_reqs
            if self._pause_state != Pause.UNPAUSED or is_full:
                break
            request = self.waiting.peek_request()
            if request.is_blocked or (
                request.num_stale_output_tokens and not request.drop_stale_output
            ):
                skipped.appendleft(self.waiting.pop_request())
                continue
            if self.lora_config and request.lora_request and (
                len(loras | {request.lora_request}) > self.lora_config.max_loras
            ):  # fmt: skip
                skipped.appendleft(self.waiting.pop_request())
                continue
            blocks, num_computed = self.kv_cache_manager.get_computed_blocks(request)
            is_undecided = self.connector is not None and self.connector.is_undecided(request)
            if is_undecided or (self.ec_connector is not None and self._lacks_encoder(request)):
                skipped.appendleft(self.waiting.pop_request())
                continue
            if defer_prefills:
                break
            num_new_tokens = request.num_tokens - num_computed
            is_chunked = self.scheduler_config.enable_chunked_prefill
            if not is_chunked and num_new_tokens > token_budget:
                break
            num_new_tokens = min(num_new_tokens, token_budget)
            if self.need_mamba_block_aligned_split and num_new_tokens < request.num_tokens:
                num_new_tokens -= num_new_tokens % self.kv_cache_manager.block_size
            if num_new_tokens == 0 or self._lacks_encoder(request):
                break
            new = self.kv_cache_manager.allocate_slots(
                request, num_new_tokens, num_new_computed_tokens=num_computed,
                new_computed_blocks=blocks, has_scheduled_reqs=bool(self.running),
            )  # fmt: skip
            if new is None:
                break
            self.waiting.pop_request()
            self.running.append(request)
            loras |= {request.lora_request} - {None}
            num_scheduled_tokens[request.request_id] = num_new_tokens
            token_budget -= num_new_tokens
            request.status, request.num_computed_tokens = Status.RUNNING, num_computed
        if skipped:
            self.waiting.prepend_requests(skipped)
        self._update_after_schedule(num_scheduled_tokens)
        return SimpleNamespace(
            num_scheduled_tokens=num_scheduled_tokens, scheduled_spec_decode_tokens={},
            total_num_scheduled_tokens=sum(num_scheduled_tokens.values()),
            scheduled_cached_reqs=SimpleNamespace(
                req_ids=[*new_blocks], new_block_ids=[*map(_ids, new_blocks.values())]
            ),
        )  # fmt: skip

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> dict[int, Any]:
        outputs = []
        for name in scheduler_output.num_scheduled_tokens:
            request = self.requests.get(name)
            if request is None or request.is_prefill_chunk or request.status != Status.RUNNING:
                continue
            request.num_output_tokens += 1
            request.num_output_placeholders = max(request.num_output_placeholders - 1, 0)
            outputs.append(SimpleNamespace(request_id=name, new_token_ids=[7]))
            if name in getattr(model_runner_output, "refused", ()):
                self._stop(request, Status.FINISHED_ERROR)
            elif request.num_output_tokens >= request.max_tokens:
                self._stop(request, Status.FINISHED_LENGTH_CAPPED)
        return {0: SimpleNamespace(outputs=outputs)}

    def finish_requests(self, request_ids: Iterable[str], finished_status: Any) -> None:
        for request in [self.requests[name] for name in request_ids if name in self.requests]:
            (self.running if request in self.running else self.waiting).remove(request)
            request.status = finished_status
            self._free_request(request)

    def set_pause_state(self, pause_state: Any) -> None:
        self._pause_state = pause_state

    def reset_prefix_cache(self) -> bool:
        return self.kv_cache_manager.block_pool.reset_prefix_cache()

    def shutdown(self) -> None:
        self.running.clear()

    def _update_after_schedule(self, num_scheduled_tokens: dict[str, int]) -> None:
        for name, num_tokens in num_scheduled_tokens.items():
            request = self.requests[name]
            request.num_computed_tokens += num_tokens
            request.is_prefill_chunk = request.num_computed_tokens < request.num_tokens
            request.num_output_placeholders += self.is_async and not request.is_prefill_chunk

    def _lacks_encoder(self, request: Request) -> bool:
        if self.ec_connector is not None and request.mm_features:
            return not self.ec_connector.ensure_cache_available(request)
        return request.has_encoder_inputs and not self.max_num_encoder_input_tokens

    def _preempt_request(self, request: Request, timestamp: float) -> None:
        self.kv_cache_manager.free(request)
        request.status, request.num_computed_tokens = Status.PREEMPTED, 0
        self.waiting.prepend_request(request)

    def _stop(self, request: Request, status: Any) -> None:
        self.running.remove(request)
        if self._handle_stopped_request(request):
            request.status = status
            self._free_request(request)

    def _handle_stopped_request(self, request: Request) -> bool:
        if not request.resumable:
            return True
        request.status, request.is_blocked = Status.WAITING_FOR_STREAMING_REQ, True
        self.waiting.add_request(request)
        return False

    def _free_request(self, request: Request) -> None:
        self.kv_cache_manager.free(request)
        del self.requests[request.request_id]


def _ids(of_groups: list[list[Any]]) -> tuple[list[int], ...] | None:
    """Ids of new blocks in each group; None where there are none, as in SchedulerOutput."""
    if not any(of_groups):
        return None
    return tuple([block.block_id for block in blocks] for blocks in of_groups)
