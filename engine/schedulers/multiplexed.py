"""`multiplexed`: a slot for each sequence, prompts whole, and all that have begun decode together.

The scheduler of report 003, as far as its head-and-worker protocol sees it. With one slot it serves
one request after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stepscope.engine.plan import Action, Admit, Defer, Reject, Run
from stepscope.engine.state import State
from stepscope.ingest.errors import ConfigError

WIDEST_VERIFY = 4  # the widest that the protocol has a command for


@dataclass(frozen=True, slots=True)
class Multiplexed:
    """Fills free slots in order of arrival, the lowest first.

    A slot holds `slot_tokens` tokens. A decode is of one token, or of a token and the guesses of
    what follows it, `verify_width` tokens in all.
    """

    slot_tokens: int = 128
    verify_width: int = 1
    name: str = "multiplexed"

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "slot_tokens": (12, 24),
        "verify_width": tuple(range(1, WIDEST_VERIFY + 1)),
    }
    slotted: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if not 1 <= self.verify_width <= WIDEST_VERIFY:
            raise ConfigError(f"verify_width={self.verify_width}: choose 1 to {WIDEST_VERIFY}")

    def schedule(self, state: State) -> Iterator[Action]:
        """Admit who fits, with the whole prompt, and decode for everybody who was there before."""
        began = sorted(state.running, key=lambda request: request.slot or 0)
        yield from self._admit(state)
        for request in began:
            num_draft = min(self.verify_width, request.max_tokens - request.num_generated) - 1
            yield Run(request, 1 + num_draft, num_draft=num_draft)

    def _admit(self, state: State) -> Iterator[Action]:
        while state.waiting:
            request = state.waiting[0]
            needed = request.max_kv_tokens + self.verify_width - 1
            if needed > self.slot_tokens:
                room = self.slot_tokens
                yield Reject(request, "longer than a slot", "slot-tokens", needed, room)
            elif not state.num_free_running_slots:
                yield Defer(request, "every slot is taken", "slot", 1, 0, _holder(state))
                return
            else:
                yield Admit(request)
                yield Run(request, request.num_tokens)


def _holder(state: State) -> str:
    return min(state.running, key=lambda request: request.age).id
