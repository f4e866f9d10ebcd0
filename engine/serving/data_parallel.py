"""Ranks that serve requests of their own, and must run the same kind of batch in every step.

Their experts are spread over all of them, so each rank takes part in every step of the others: one
that has nothing to run runs a *dummy*. And since kernels for prompts and for decodes exchange
tokens differently, the dummy has to be of the kind that the others run. So before it forms a batch
each rank foretells its kind, and all take prefill if anybody said prefill. A rank that wanted to
decode lets its decodes wait then, and runs a dummy too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stepscope.engine.batch import DECODE, PREFILL
from stepscope.engine.serving.engine import Engine
from stepscope.engine.state import State


class Foretelling(Protocol):
    """A scheduler that knows what its next batch will be."""

    def next_kind(self, state: State) -> str | None:
        """Return `prefill`, which mixed batches are too, `decode`, or None for nothing."""
        ...


class LockStep:
    """Runs `engines`, one for each rank, one step of all after the other; `scheduler` is theirs."""

    def __init__(self, engines: Sequence[Engine], scheduler: Foretelling) -> None:
        self._engines = engines
        self._scheduler = scheduler

    def run(self) -> None:
        """Step until every request has ended, or something ends the run of one of them."""
        while self._has_work():
            causes = [engine.cause_to_stop() for engine in self._engines]
            if cause := next(filter(None, causes), None):
                for engine in self._engines:
                    engine.abort(cause)
                return
            self._step()
            self._meet(max(engine.clock.now_ns() for engine in self._engines))

    def _step(self) -> None:
        kinds = [self._scheduler.next_kind(engine.state) for engine in self._engines]
        agreed = next((kind for kind in (PREFILL, DECODE) if kind in kinds), None)
        for engine, kind in zip(self._engines, kinds, strict=True):
            engine.step(*((None, None) if kind == agreed else (agreed, kinds.index(agreed))))

    def _has_work(self) -> bool:
        if not any(engine.is_serving for engine in self._engines):
            arrivals_ns = [engine.next_arrival_ns for engine in self._engines]
            self._meet(min((ns for ns in arrivals_ns if ns is not None), default=0))
        return any(engine.is_serving for engine in self._engines)

    def _meet(self, now_ns: int) -> None:
        """Whoever is early waits for the others: they exchange tokens until the end of a step."""
        for engine in self._engines:
            engine.clock.advance_to(now_ns)
            engine.take_arrivals()
