"""One scheduling policy per file, behind one Protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol

from stepscope.engine.plan import Action
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.schedulers.multiplexed import Multiplexed
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.schedulers.queued import Queued
from stepscope.engine.schedulers.slotted import Slotted
from stepscope.engine.state import State


class Scheduler(Protocol):
    """Decides what runs together in a step.

    `knobs` are its settings, each with the values that a test tries. One that is `slotted` takes an
    engine with slots, in each of which a whole request has room, its `slot_tokens`.
    """

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    slotted: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What it is called in a trace."""
        ...

    @property
    def supports(self) -> frozenset[str]:
        """Which of the `OPTIONAL` parts of an engine it works with; none, by default."""
        return frozenset()

    def schedule(self, state: State) -> Iterator[Action]:
        """Yield this step's actions; each is performed before the next is asked for.

        `state` is for reading: the engine alone changes it.
        """
        ...


SCHEDULERS: tuple[type[Scheduler], ...] = (
    Bucketed,
    Slotted,
    Multiplexed,
    Paged,
    Queued,
)
"""All policies; what must hold of every one is tried on each of these."""

__all__ = ["SCHEDULERS", "Bucketed", "Multiplexed", "Paged", "Queued", "Scheduler", "Slotted"]
