"""Every known bug of the engine, by name; nothing is wrong unless its name is switched on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from stepscope.ingest.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Fault:
    """A bug that `EngineConfig(faults={name})` switches on, and what it does."""

    name: str
    summary: str


FAULTS: tuple[Fault, ...] = (
    Fault("shortest-bucket", "the bucket of the shortest sequences runs, not the oldest's"),
    Fault(
        "newest-first-oldest-preempted",
        "the newest requests get blocks first and the oldest are preempted for them",
    ),
    Fault(
        "bucket-preemption-with-free-blocks",
        "requests outside the chosen bucket are preempted though their blocks are not needed",
    ),
    Fault(
        "incompatible-requeued-on-drained-queue",
        "requests of other buckets go back on the queue that is being drained: it never ends",
    ),
    Fault(
        "one-victim-then-ignored",
        "one victim is preempted for a request; when that is too little, the request is dropped",
    ),
    Fault(
        "mix-shift-wrap",
        "MIX placement shifts by 64 bits: the 23rd group of a thread wraps to another group's AIV",
    ),
    Fault(
        "lost-ring-advance",
        "a ring moves on by the task that retired, and not past those that had retired before",
    ),
    Fault(
        "stale-reservation",
        "an AIV-only dispatch shows itself only once MIX admission has looked",
    ),
)
_NAMES = {fault.name: fault for fault in FAULTS}


def check_faults(names: Iterable[str]) -> None:
    """Raise ConfigError, with near matches, for a name that is no fault."""
    for name in names:
        if name not in _NAMES:
            near = get_close_matches(name, _NAMES, n=3) or sorted(_NAMES)
            raise ConfigError(f"no fault is called {name!r}", todo=f"try {', '.join(near)}")
