"""How steps with our functions are told from steps without, on steps whose difference is known."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from stepscope.ingest.attach.hooks import Hooks
from tests.vllm.costs.bench_in_turn import Load, Pair, Placed
from tests.vllm.costs.bench_pairs import More


class Engine:
    """What steps in so many seconds, and longer while something stands around its functions."""

    num_steps = 40

    def __init__(self, clock: Clock, *, faster: float = 1.0) -> None:
        self.clock, self.faster, self.part = clock, faster, Part()

    def begin(self) -> None: ...
    def end(self) -> None: ...
    def idle(self) -> None: ...
    def parts(self) -> list[Any]:
        return [self.part]

    def at(self, place: int) -> float:
        seconds = 0.02 * (10 if place == 0 else 1) * self.faster * self.clock.pace()
        return seconds * (1 + self.part.own() + self.part.of_class())


class Clock:
    """A processor whose pace wanders by half within seconds, and goes elsewhere now and then."""

    def __init__(self) -> None:
        self.now, self.random = 1.0, Random(1)

    def pace(self) -> float:
        self.now = min(max(self.now * self.random.gauss(1, 0.05), 0.5), 2)
        return self.now * (3 if self.random.random() < 0.02 else 1)


class Base:
    def of_class(self) -> float:
        return 0


class Part(Base):
    def own(self) -> float:
        return 0


def _share(more: float) -> More:
    """What is told of two engines, one faster throughout, whose hooked functions take so much."""
    clock, placed = Clock(), Placed()
    both = [Engine(clock), Engine(clock, faster=0.9)]
    with placed.installed():
        hooks = Hooks(lambda _: None)
        hooks.instead(Base, "of_class", (), lambda own: lambda part: own(part) + more / 2)
        for engine in both:
            hooks.instead(engine.part, "own", (), lambda own: lambda: own() + more / 2)
    pair = Pair(both, placed)
    try:
        return More.of([pair.phase() for _ in range(80)])
    finally:
        assert Base().of_class() == 0, "the class has its own function again"


@pytest.mark.parametrize("more", [0.0, 0.01, 0.02, 0.05])
def test_the_share_that_our_functions_take_is_told_within_its_interval(more: float) -> None:
    told = _share(more)
    assert told.low < more < told.high
    assert told.high - told.low < 0.01, "on steps whose length varies by half"
    assert told.share == pytest.approx(more, abs=0.004)


def test_what_is_overridden_below_a_class_cannot_be_given_to_one_engine() -> None:
    class Overriding(Part):
        def of_class(self) -> float:
            return super().of_class()

    placed = Placed()
    with placed.installed():
        Hooks(lambda _: None).instead(Base, "of_class", (), lambda own: lambda part: 2 * own(part))
    placed.give_back()
    with pytest.raises(TypeError, match="Overriding"):
        placed.of([Overriding()])
    assert Load("none", 0).limit == 0.01
