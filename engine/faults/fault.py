"""What is known of one bug of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fault:
    """A bug of `scenario` that `EngineConfig(faults={name})` switches on, and what it does.

    It shows itself in the otherwise sound `variant`, under `settings` where the default ones are
    too easy on it, and on `executor` where that is not the scenario's first.
    """

    name: str
    scenario: str
    summary: str
    variant: str = "after"
    settings: Mapping[str, str] = field(default_factory=dict)
    executor: str | None = None
