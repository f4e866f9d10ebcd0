"""`queued`: the waiting loops of serving engines, with what can stop them short.

Prefills run in chunks within a budget, either beside the decodes, as in vLLM, or before them, as in
SGLang. A waiting request may be skipped, until its grammar is compiled or its KV has come from
elsewhere; such a one holds blocks while it waits.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, TypeVar

from stepscope.engine.batch import DECODE, PREFILL
from stepscope.engine.plan import Action, Admit, Defer, Load, Preempt, Promote, Reject, Run
from stepscope.engine.requests.request import Request, Status
from stepscope.engine.state import State
from stepscope.ingest.errors import ConfigError

LOADS = ("reserved", "lateral", "greedy")
NO_BOUND = -1
# Those in whose engine a request that is ready is promoted when the loop comes to it, or never.
ONLY_IN_LINE = frozenset({"ready-not-looked-at", "half-the-pool-each"})
FAULTY_KNOBS: dict[str, dict[str, Any]] = {
    "prompts-always-first": {"decode_rounds": 0, "max_prefills": 0},
    "blocked-head-holds-all": {"max_passes": 0},
    "passed-without-bound": {"max_passes": NO_BOUND},
    "half-the-pool-each": {"loads": "greedy", "max_passes": 0},
    "never-fits-and-waits": {"max_passes": 0},
}
T = TypeVar("T")
Plan = Generator[Action, None, T]


@dataclass(frozen=True, slots=True)
class Queued:
    """Runs those who run, and lets in who fits, first come, first served.

    - `prefill_first`: whether decodes run only in steps in which no prompt can.
    - `decode_rounds`: steps after one with prompts that are the decodes', whatever waits.
    - `max_prefills`: steps with prompts in a row after which one is the decodes', as soon as no
      prompt is in the middle of its chunks; 0: no bound.
    - `max_passes`: how often those behind a request that lacks KV blocks may be let in before it;
      -1: as often as they fit.
    - `loads`: when blocks are given for KV that comes from elsewhere: `reserved`, when those that
      others have begun with will have all that they need; else as soon as there are enough, and
      then, where nobody runs, `lateral` takes them from others that wait, and `greedy` does not.
    """

    prefill_first: bool = False
    decode_rounds: int = 0
    max_prefills: int = 0
    max_passes: int = 0
    loads: str = "reserved"
    faults: Set[str] = field(default_factory=frozenset)
    name: str = "queued"

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "prefill_first": (False, True),
        "decode_rounds": (0, 2),
        "max_prefills": (0, 1, 3),
        "max_passes": (0, 2, NO_BOUND),
        "loads": LOADS,
    }
    slotted: ClassVar[bool] = False
    supports: ClassVar[frozenset[str]] = frozenset(
        {"async_dependencies", "prefix_cache", "deferred_output"}
    )

    def __post_init__(self) -> None:
        if self.loads not in LOADS:
            raise ConfigError(f"loads={self.loads}: choose {', '.join(LOADS)}")
        if self.max_passes < NO_BOUND:
            raise ConfigError(f"max_passes={self.max_passes}: it is a number of times, or -1")

    def with_faults(self, faults: Iterable[str]) -> Queued:
        """Return the scheduler with its knobs turned to the faults that are switched on."""
        knobs: dict[str, Any] = {"faults": frozenset(faults)}
        for fault in sorted(knobs["faults"]):
            knobs |= FAULTY_KNOBS.get(fault, {})
        return replace(self, **knobs)

    def schedule(self, state: State) -> Iterator[Action]:
        """Run whoever runs, and admit; or one of both, where prompts go first."""
        decodes = [request for request in state.running if not request.is_prefill]
        if self.prefill_first and decodes and self._is_decodes_turn(state):
            yield from self._run(state, decodes)
            yield from _wait_for_decodes(state)
        elif self.prefill_first:
            prompts = [request for request in state.running if request.is_prefill]
            yield from self._run(state, prompts)
            yield from self._admit(state)
            yield from self._run(state, decodes) if not state.batch.rows else _wait(decodes)
        else:
            yield from self._run(state, tuple(state.running))
            yield from self._admit(state)

    def _is_decodes_turn(self, state: State) -> bool:
        since = state.step - state.prefilled_step
        if state.prefilled_step > 0 and since <= self.decode_rounds:
            return True
        is_chunked = any(request.is_prefill for request in state.running)
        return 0 < self.max_prefills <= state.num_prefills and not is_chunked

    def _run(self, state: State, requests: Iterable[Request]) -> Iterator[Action]:
        for request in requests:
            while request.status is Status.RUNNING:
                if not _budget(state):
                    yield _over_budget(request)
                    break
                needed = state.num_missing_blocks(request, request.num_tokens)
                if needed <= state.kv_blocks.num_free:
                    yield Run(request, min(_remaining(request), _budget(state)))
                    break
                yield Preempt(_newest(state), f"{request.id} needs its blocks", request, needed)

    def _admit(self, state: State) -> Iterator[Action]:
        if "full-since-the-last-chunk" in self.faults and state.was_full:
            return
        if not self.faults & ONLY_IN_LINE:
            yield from _promoted(each for each in tuple(state.waiting) if each.is_ready)
        passed: list[Request] = []
        for request in tuple(state.waiting):
            if "ready-not-looked-at" in self.faults and not _budget(state):
                return
            if not all(map(self._may_be_passed, passed)):
                return
            if request.is_ready:
                yield from _promoted([request])
            deferral = None
            if request.status is Status.WAITING:
                deferral = yield from self._considered(state, request)
            if deferral and deferral.resource != "kv-block":
                return
            passed += [request] if deferral else []

    def _considered(self, state: State, request: Request) -> Plan[Defer | None]:
        """Let a request in, or say what it lacks, and return that."""
        if request.is_skipped:
            yield Defer(request, _unready(request))
        elif (rejection := _never_fits(state, request)) and (
            "never-fits-and-waits" not in self.faults
        ):
            yield rejection
        elif deferral := (yield from self._obstacle(state, request)):
            yield deferral
            return deferral
        elif _is_elsewhere(request):
            yield Load(request)
            yield Defer(request, _unready(request))
        else:
            yield Admit(request)
            yield Run(request, min(_remaining(request), _budget(state)))
        return None

    def _obstacle(self, state: State, request: Request) -> Plan[Defer | None]:
        num_free = state.num_free_running_slots
        if "full-since-the-last-chunk" in self.faults:
            num_free -= sum(row.num_computed > 0 for row in state.batch.rows)
        if num_free <= 0:
            return Defer(request, "every running slot is taken", "seat", 1, 0)
        if not _budget(state):
            return _over_budget(request)
        needed, room = self._blocks(state, request)
        if needed > room and self.loads == "lateral" and not state.running:
            yield from _take_from_waiting(state, request, needed)
            needed, room = self._blocks(state, request)
        if needed > room:
            return Defer(request, "too few KV blocks are free", "kv-block", needed, room)
        return None

    def _blocks(self, state: State, request: Request) -> tuple[int, int]:
        """How many blocks a waiting request needs, and how many of the free ones it may have."""
        num_free = state.kv_blocks.num_free
        if not _is_elsewhere(request):
            return state.num_missing_blocks(request, request.num_tokens), num_free
        if self.loads != "reserved":
            return state.num_missing_blocks(request, request.remote_tokens), num_free
        others = (each for each in state.waiting if each.block_table and each is not request)
        num_reserved = sum(state.num_missing_blocks(each, each.num_tokens) for each in others)
        return state.num_missing_blocks(request, request.num_tokens), num_free - num_reserved

    def _may_be_passed(self, request: Request) -> bool:
        return self.max_passes == NO_BOUND or request.num_passed < self.max_passes


def _promoted(ready: Iterable[Request]) -> Iterator[Action]:
    for request in ready:
        yield Promote(request)
        if request.prepare_fails:
            yield Reject(request, "its grammar does not compile")


def _take_from_waiting(state: State, request: Request, needed: int) -> Iterator[Action]:
    """Take blocks from those who wait and hold some, the youngest first and nobody older."""
    holders = [each for each in state.waiting if each.block_table and each.age > request.age]
    for victim in sorted(holders, key=_age, reverse=True):
        if needed <= state.kv_blocks.num_free:
            return
        yield Preempt(victim, f"{request.id} needs its blocks, and nobody runs", request, needed)


def _wait(decodes: Iterable[Request]) -> Iterator[Action]:
    for request in decodes:
        yield Defer(request, "prompts go first", "phase", instead=PREFILL)


def _wait_for_decodes(state: State) -> Iterator[Action]:
    prompts = (request for request in state.running if request.is_prefill)
    for request in (*prompts, *islice(state.waiting, 1)):
        yield Defer(request, "it is the decodes' turn", "phase", instead=DECODE)


def _newest(state: State) -> Request:
    """The last to arrive who is not in this step's batch; whoever is short of blocks may be it."""
    return max((each for each in state.running if each.id not in state.batch.scheduled), key=_age)


def _never_fits(state: State, request: Request) -> Reject | None:
    blocks = state.kv_blocks
    needed, total = blocks.num_blocks_for(request.max_kv_tokens), blocks.num_blocks
    if needed <= total:
        return None
    return Reject(request, "longer than the KV pool", "kv-block", needed, total)


def _is_elsewhere(request: Request) -> bool:
    return request.remote_tokens > 0 and not request.num_computed


def _unready(request: Request) -> str:
    return "its KV is on its way" if request.remote_tokens else "its grammar is being compiled"


def _over_budget(request: Request) -> Defer:
    return Defer(request, "the token budget is spent", "token-budget", _remaining(request), 0)


def _budget(state: State) -> int:
    return state.config.max_num_batched_tokens - state.batch.num_batched_tokens


def _remaining(request: Request) -> int:
    return request.num_tokens - request.num_computed


def _age(request: Request) -> tuple[int, int]:
    return request.age
