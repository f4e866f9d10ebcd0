"""`slots`: B fixed slots, and every live one decodes in every step.

The scheduler of report 002. A queued request takes the lowest free slot as soon as there is one,
also while other slots are in the middle of their output; its prompt is written and its first token
decoded in the very step that admits it. Nobody is ever left out, put off or preempted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from stepscope.engine.plan import Action, Admit, Defer, Reject, Run
from stepscope.engine.requests.request import Request
from stepscope.engine.state import State
from stepscope.ingest.errors import ConfigError

REFILLS = ("at-once", "when-drained", "one-by-one")
OF_FAULT = {"refill-when-drained": "when-drained", "one-slot-used": "one-by-one"}


@dataclass(frozen=True, slots=True)
class Slotted:
    """Fills free slots in order of arrival, and runs all that hold one.

    `refill` says when a freed slot is filled again: `at-once`, `when-drained`, that is when every
    slot is free, or `one-by-one`: then, and one only. A slot holds `slot_tokens` tokens.
    """

    slot_tokens: int = 128
    refill: str = "at-once"
    name: str = "slots"

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {"slot_tokens": (12, 5), "refill": REFILLS}
    slotted: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if self.refill not in REFILLS:
            raise ConfigError(f"refill={self.refill}: choose {' or '.join(REFILLS)}")

    def with_faults(self, faults: Iterable[str]) -> Slotted:
        """Return the scheduler as it is with the faults that are switched on."""
        refill = next((OF_FAULT[name] for name in faults if name in OF_FAULT), self.refill)
        return replace(self, refill=refill)

    def schedule(self, state: State) -> Iterator[Action]:
        """Admit who fits, then run every live slot, the lowest first."""
        yield from self._admit(state)
        for request in sorted(state.running, key=_slot_of):
            yield _decode(request) if request.num_computed else _prefill_and_decode(request)

    def _admit(self, state: State) -> Iterator[Action]:
        is_open = self.refill == "at-once" or not state.running
        num_left = state.config.max_num_batched_tokens - len(state.running)
        while state.waiting:
            request = state.waiting[0]
            if rejection := self._never_fits(state, request):
                yield rejection
            elif deferral := _has_to_wait(state, request, num_left, is_open=is_open):
                yield deferral
                return
            else:
                yield Admit(request)
                is_open = self.refill != "one-by-one"
                num_left -= _prefill_and_decode(request).num_tokens

    def _never_fits(self, state: State, request: Request) -> Reject | None:
        needed, room = request.max_kv_tokens, self.slot_tokens
        if needed > room:
            return Reject(request, "longer than a slot", "slot-tokens", needed, room)
        needed, room = _prefill_and_decode(request).num_tokens, state.config.max_num_batched_tokens
        if needed > room:
            return Reject(request, "longer than a step's tokens", "token-budget", needed, room)
        return None


def _prefill_and_decode(request: Request) -> Run:
    """The prompt gives the first token, which is decoded at once unless it was all asked for."""
    num_fed_back = min(1, request.max_tokens - 1)
    return Run(request, request.num_tokens + num_fed_back, num_fed_back)


def _decode(request: Request) -> Run:
    return Run(request, 1)


def _has_to_wait(state: State, request: Request, num_left: int, *, is_open: bool) -> Defer | None:
    num_free = state.num_free_running_slots
    if not num_free:
        return Defer(request, "every slot is taken", "slot", 1, 0)
    if not is_open:
        return Defer(request, "slots are filled when all are free", "slot", 1, num_free)
    needed = _prefill_and_decode(request).num_tokens
    if needed > num_left:
        return Defer(request, "the token budget is spent", "token-budget", needed, num_left)
    return None


def _slot_of(request: Request) -> int:
    return request.slot or 0
