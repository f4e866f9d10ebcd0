"""Which path the experts take in a decode of several rows: by its width, or always grouped.

Adding another choice is one object and one line in `EXPERT_CHOICES`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from stepscope.engine.named import named
from stepscope.engine.parallel.costs import ATTENTION, GROUPED, KINDS


class ExpertChoice(Protocol):
    """Chooses the path of the experts; `name` is as a configuration spells it."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def path(self, kind: str, by_width: str) -> str:
        """Return the path in layers of one of `KINDS`, where the width would choose `by_width`."""
        ...


@dataclass(frozen=True, slots=True)
class ByWidth:
    """The path that is the fastest for so many rows."""

    name: str = "by-width"

    def path(self, kind: str, by_width: str) -> str:
        """Return the width's own path."""
        del kind
        return by_width


@dataclass(frozen=True, slots=True)
class AlwaysGrouped:
    """The grouped GEMM in layers of some `kinds`, however few the rows are."""

    name: str
    kinds: Collection[str]

    def path(self, kind: str, by_width: str) -> str:
        """Return the grouped GEMM for those layers, for others the width's own path."""
        return GROUPED if kind in self.kinds else by_width


BY_WIDTH = ByWidth()
GROUPED_GEMM = AlwaysGrouped("grouped-gemm", KINDS)
GROUPED_ATTENTION = AlwaysGrouped("grouped-attention", (ATTENTION,))
EXPERT_CHOICES: tuple[ExpertChoice, ...] = (BY_WIDTH, GROUPED_GEMM, GROUPED_ATTENTION)


def expert_choice(name: str) -> ExpertChoice:
    """Return the choice of that name; ConfigError naming all of them for any other."""
    return named(name, EXPERT_CHOICES, "choice of the experts' path")
