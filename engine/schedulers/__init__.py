"""One scheduling policy per file, behind one Protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from stepscope.engine.plan import Action
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.schedulers.queued import Queued
from stepscope.engine.schedulers.slotted import Slotted
from stepscope.engine.state import State


class Scheduler(Protocol):
    """Decides what runs together in a step."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        ...

    def schedule(self, state: State) -> Iterator[Action]:
        """Yield this step's actions; each is performed before the next is asked for.

        `state` is for reading: the engine alone changes it.
        """
        ...


SCHEDULERS: tuple[type[Scheduler], ...] = (Bucketed, Slotted, Paged, Queued)

__all__ = ["SCHEDULERS", "Bucketed", "Paged", "Queued", "Scheduler", "Slotted"]
