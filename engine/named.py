"""Finding one of several things by the name that the command line spells it with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from stepscope.ingest.errors import ConfigError


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


T = TypeVar("T", bound=Named)


def named(name: str, known: Iterable[T], what: str) -> T:
    """Return the one of `known` that has the name; ConfigError with all names for any other.

    `what` is what they are, for the message: "admission policy".
    """
    by_name = {each.name: each for each in known}
    if name not in by_name:
        raise ConfigError(
            f"no {what} is called {name!r}", todo=f"choose one of {', '.join(by_name)}"
        )
    return by_name[name]
