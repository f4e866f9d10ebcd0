"""`paged`: continuous batching over KV blocks, prompts in chunks, prompts and decodes in one batch.

The scheduler of report 001. A step resumes the prompts that were begun, admits waiting ones, first
come first served, and lets the decodes have what is left: prompts first. So that decodes are not
left with nothing, tokens are reserved for them before: as many as they will take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from stepscope.engine.batch import DECODE, PREFILL
from stepscope.engine.plan import Action, Admit, Defer, Preempt, Reject, Reserve, Run
from stepscope.engine.requests.request import Request, Status
from stepscope.engine.state import State
from stepscope.ingest.errors import ConfigError

IMAGE = "image"
ORDERS = ("fcfs", "priority")


@dataclass(frozen=True, slots=True)
class Paged:
    """Prefills within the budget that decodes leave them, then decodes within the whole budget.

    - `mixed`: whether a batch may hold prompts and decodes; if not, decodes wait for prefills.
    - `reserve`: whether decodes in flight have their tokens reserved, `mtp_k` + 1 each.
    - `decodes_first`: decodes take their tokens before prompts do, and their rows come first, as in
      vLLM's order of running before waiting; there is nothing to reserve then.
    - `long_prefill_threshold`: most tokens of one prompt in a step; 0: no limit. An image is
      embedded as a whole, and its prompt is neither limited nor split.
    - `order`: who is served first, `fcfs`, or whoever has the lowest number as `priority`.
    - `mtp_k`: how many tokens are drafted for each decode; not with `mixed`, whose batches have
      one row of logits for each request.
    """

    mixed: bool = True
    reserve: bool = True
    decodes_first: bool = False
    long_prefill_threshold: int = 0
    order: str = "fcfs"
    mtp_k: int = 0
    faults: Set[str] = field(default_factory=frozenset)
    name: str = "paged"

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "mixed": (True, False),
        "reserve": (True, False),
        "decodes_first": (False, True),
        "long_prefill_threshold": (0, 3),
        "order": ORDERS,
        "mtp_k": (0, 1, 2),
    }
    slotted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ConfigError(f"order={self.order}: choose {' or '.join(ORDERS)}")
        if self.mixed and self.mtp_k and "mtp-with-mixed" not in self.faults:
            raise ConfigError("MTP does not work with mixed batches", todo="switch one of them off")

    @property
    def supports(self) -> frozenset[str]:
        """A prefix cache; and output that comes a step late, where nothing is drafted after it."""
        return frozenset({"prefix_cache"} if self.mtp_k else {"prefix_cache", "deferred_output"})

    def with_faults(self, faults: Iterable[str]) -> Paged:
        """Return the scheduler with the faults that are switched on."""
        return replace(self, faults=frozenset(faults))

    def schedule(self, state: State) -> Iterator[Action]:
        """Resume prompts, admit more of them, and decode, in the order of the rows."""
        prompts, decodes = _by_phase(state.running)
        if reserved := self._reserved(state, len(decodes)):
            yield Reserve(reserved)
        if self._starts_with_decodes:
            yield from self._decode(state, decodes)
            decodes = []
        yield from self._resume(state, prompts)
        yield from self._admit(state)
        if self.mixed or not state.batch.rows:
            yield from self._decode(state, decodes)
        else:
            for request in decodes:
                yield Defer(request, "prompts go first", "phase", instead=PREFILL)
        if "scheduled-twice" in self.faults:
            yield from _once_more(state)

    def next_kind(self, state: State) -> str | None:
        """Return what the next batch will be for other ranks: prefill, decode or None.

        A mixed batch is a prefill for them.
        """
        prompts, decodes = _by_phase(state.running)
        num_before = len(decodes) if self._starts_with_decodes else 0
        left = state.config.max_num_batched_tokens - max(
            num_before, self._reserved(state, len(decodes))
        )
        if "peer-kind-from-queue" in self.faults:
            prompts = []
        waiting = self._ordered(state.waiting)
        fitting = (each for each in waiting if not _never_fits(state, each))
        head = next(fitting, None)
        if any(self._chunk(request, left) for request in prompts) or (
            head and not self._obstacle(state, head, left)
        ):
            return PREFILL
        return DECODE if decodes else None

    @property
    def _starts_with_decodes(self) -> bool:
        return self.mixed and self.decodes_first

    def _reserved(self, state: State, num_decodes: int) -> int:
        config = state.config
        is_off = not (self.mixed and self.reserve) or self.decodes_first
        is_off |= "prefill-eats-the-budget" in self.faults
        if is_off or not num_decodes:
            return 0
        if "reserve-for-max-num-seqs" in self.faults:
            num_decodes = config.max_num_seqs
        num_rows = min(num_decodes, config.max_num_seqs)
        return min(num_rows * (self.mtp_k + 1), config.max_num_batched_tokens)

    def _resume(self, state: State, prompts: Iterable[Request]) -> Iterator[Action]:
        for request in prompts:
            if request.status is not Status.RUNNING:  # a decode that went first took its blocks
                continue
            left = _prefill_budget(state)
            if chunk := self._chunk(request, left):
                yield Run(request, chunk)
            else:
                yield _over_budget(request, self._wanted(request), left)

    def _admit(self, state: State) -> Iterator[Action]:
        while state.waiting:
            request = self._head(state)
            left = _prefill_budget(state)
            if rejection := _never_fits(state, request):
                yield rejection
            elif deferral := self._obstacle(state, request, left):
                yield deferral
                return
            else:
                yield Admit(request)
                yield Run(request, self._chunk(request, left))

    def _decode(self, state: State, decodes: Iterable[Request]) -> Iterator[Action]:
        for request in self._ordered(decodes):
            while request.status is Status.RUNNING:
                left = state.config.max_num_batched_tokens - state.batch.num_batched_tokens
                if not left:
                    yield _over_budget(request, 1, 0)
                    break
                num_draft = self._num_draft(request, left)
                needed = state.num_missing_blocks(request, request.num_tokens + num_draft)
                if needed <= state.kv_blocks.num_free:
                    yield Run(request, 1 + num_draft, num_draft=num_draft)
                    break
                victim = self._victim(state)
                yield Preempt(victim, f"{request.id} needs its blocks", request, needed)

    def _obstacle(self, state: State, request: Request, left: int) -> Defer | None:
        if not state.num_free_running_slots:
            return Defer(request, "every running slot is taken", "seat", 1, 0)
        if not self._chunk(request, left):
            return _over_budget(request, self._wanted(request), left)
        needed, num_free = state.num_blocks_to_admit(request), state.kv_blocks.num_free
        if needed > num_free:
            return Defer(request, "too few KV blocks are free", "kv-block", needed, num_free)
        return None

    def _chunk(self, request: Request, left: int) -> int:
        """How many of its tokens run if `left` may: all of an image's prompt, or none of it."""
        if _is_whole(request):
            return min(_remaining(request), left) if left >= _unread(request) else 0
        return min(self._wanted(request), left)

    def _wanted(self, request: Request) -> int:
        if _is_whole(request):
            return _unread(request)
        if not self.long_prefill_threshold or "no-request-cap" in self.faults:
            return _remaining(request)
        return min(_remaining(request), self.long_prefill_threshold)

    def _num_draft(self, request: Request, left: int) -> int:
        return max(0, min(self.mtp_k, left - 1, request.max_tokens - request.num_generated - 1))

    def _head(self, state: State) -> Request:
        return next(iter(self._ordered(state.waiting)))

    def _ordered(self, requests: Iterable[Request]) -> Iterable[Request]:
        return requests if self.order == "fcfs" else sorted(requests, key=_priority)

    def _victim(self, state: State) -> Request:
        """The newest of the least important; the one that is short of blocks may be it itself."""
        spared = frozenset() if "victim-in-batch" in self.faults else state.batch.scheduled
        running = (request for request in state.running if request.id not in spared)
        return max(running, key=lambda request: (request.priority, request.age))


def _by_phase(running: Iterable[Request]) -> tuple[list[Request], list[Request]]:
    """Split requests into those whose prompt is being computed and those that decode."""
    prompts: list[Request] = []
    decodes: list[Request] = []
    for request in running:
        (prompts if request.is_prefill else decodes).append(request)
    return prompts, decodes


def _once_more(state: State) -> Iterator[Action]:
    left = state.config.max_num_batched_tokens - state.batch.num_batched_tokens
    ending = [row for row in state.batch.rows if row.phase is PREFILL and row.samples]
    for row in ending[:left]:
        yield Run(row.request, 1)


def _never_fits(state: State, request: Request) -> Reject | None:
    blocks, config = state.kv_blocks, state.config
    most = request.max_kv_tokens + config.deferred_output
    needed, total = blocks.num_blocks_for(most), blocks.num_blocks
    if needed > total:
        return Reject(request, "longer than the KV pool", "kv-block", needed, total)
    needed, total = request.prompt_len, config.max_num_batched_tokens
    if request.modality == IMAGE and needed > total:
        return Reject(
            request, "an image longer than a step's tokens", "token-budget", needed, total
        )
    return None


def _over_budget(request: Request, needed: int, left: int) -> Defer:
    return Defer(request, "the token budget is spent", "token-budget", needed, left)


def _prefill_budget(state: State) -> int:
    batch, config = state.batch, state.config
    num_reserved = 0 if "reserve-not-held" in config.faults else batch.num_reserved
    return config.max_num_batched_tokens - num_reserved - batch.num_batched_tokens


def _remaining(request: Request) -> int:
    return request.num_tokens - request.num_computed


def _unread(request: Request) -> int:
    return request.prompt_len - request.num_computed


def _is_whole(request: Request) -> bool:
    return request.modality == IMAGE and request.num_computed < request.prompt_len


def _priority(request: Request) -> int:
    return request.priority
