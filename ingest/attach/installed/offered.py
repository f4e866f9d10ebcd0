"""What an engine has to offer to be recorded: what an adapter says of its engine, by names alone.

Nothing of the engine is imported to say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Something that can be recorded, and the functions of the engine without which it is not, but
    where all of those that stand `instead` of them are there.

    A function is `module:Class.name(parameters)`.
    """

    name: str
    needs: tuple[str, ...]
    instead: tuple[str, ...] = ()

    def missing(self, found: Mapping[str, bool]) -> tuple[str, ...]:
        """Give what is not there of what it needs."""
        if self.instead and all(found[name] for name in self.instead):
            return ()
        return tuple(name for name in self.needs if not found[name])


@dataclass(frozen=True)
class InstalledEngine:
    """An engine that records itself.

    `name` is that of its package, `distributions` are those that may bring it. It loads plug-ins
    of the group `plugins`, of which the variable `allowed` names those that it may; where that is
    empty, all or none (`empty_is_all`). `tested` are versions that were recorded whole, `never` is
    what no version of it is recorded of.
    """

    name: str
    title: str
    distributions: tuple[str, ...]
    plugins: str
    allowed: str
    empty_is_all: bool
    tested: tuple[str, ...]
    parts: tuple[Part, ...]
    never: tuple[str, ...]

    def loads_us(self, allowed: str | None) -> bool:
        """Tell whether it would load our plug-in, where that is what its variable holds."""
        if allowed is None or (self.empty_is_all and not allowed):
            return True
        return "stepscope" in [each.strip() for each in allowed.split(",")]


def held(takes: tuple[str, ...]) -> list[str]:
    """Of parameters, those without which a function is another one."""
    return [each for each in takes if not each.endswith("?")]
