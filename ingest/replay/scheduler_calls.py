"""What a replay needs of an engine's scheduler: the calls that its own loop makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from stepscope.ingest.replay.script import Asked, Script
from stepscope.ingest.replay.virtual_clock import Clock


@dataclass(frozen=True, slots=True)
class Row:
    """A request in a batch: its tokens, those computed before, whether it samples, its drafts."""

    request: str
    num_tokens: int
    num_computed: int
    samples: bool
    num_drafts: int = 0


@dataclass(frozen=True, slots=True)
class Formed:
    """A batch that a scheduler formed; `handle` is what the scheduler calls it."""

    rows: tuple[Row, ...]
    handle: Any


class Scheduler(Protocol):
    """A scheduler as the loop of its engine sees it. What it raises ends the replay."""

    is_async: bool
    """Whether the next batch is formed while the one before it still runs."""
    num_drafts: int
    """Most drafts that are proposed for a request in a step."""

    def add(self, asked: Asked) -> None:
        """A request comes."""

    def ready(self, request: str) -> None:
        """What the request had to wait for beside room is there."""

    def schedule(self, *, is_throttled: bool) -> Formed:
        """Form the next batch, which may be empty."""

    def dummy(self, began_ns: int) -> None:
        """A step of nothing was run, which no scheduler was asked for."""

    def update(self, formed: Formed, tokens: Mapping[str, int], ends: Mapping[str, str]) -> None:
        """The batch has run: how many tokens each request sampled, and how those ended that did."""

    def propose(self, drafts: Mapping[str, int]) -> None:
        """So many drafts are proposed for each of these."""

    def abort(self, request: str) -> None:
        """The request is given up from outside."""

    def has_work(self) -> bool:
        """Tell whether there is anything to form a batch for."""

    def open_requests(self) -> Sequence[str]:
        """Those who have come and not ended."""


class Replayed(Protocol):
    """A scheduler that a script asks for, recorded until the block that it is used in ends.

    Made of a script, the trace that it is recorded into, and the replay's clock. An engine's is
    `Replayed` in `replayed.py` of the folder that has the engine's name.
    """

    @property
    def scheduler(self) -> Scheduler:
        """What is called."""

    @property
    def said(self) -> dict[str, Any]:
        """What is told of it: its version, its class, and settings that it does not know."""

    def __enter__(self) -> Replayed: ...

    def __exit__(self, *_: object) -> None: ...


Replays = Callable[[Script, Path, Clock], Replayed]
