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
        "skip-mirror-refresh",
        "an admission commits the host mirror without refreshing it: live slots go back in time",
    ),
    Fault(
        "recycle-without-clearing",
        "a recycled slot keeps its old length: its owner reads what the one before it wrote",
    ),
    Fault(
        "masked-row-leak",
        "the token of an idle row is kept, for the request that had the slot last",
    ),
    Fault(
        "refill-when-drained",
        "a freed slot stays idle, with a queue, until every other slot is free too",
    ),
    Fault("token-after-eos", "the end of an output is not looked for: it runs on to its cap"),
    Fault("token-past-cap", "the cap is compared one token too late"),
    Fault("cap-before-eos", "an output that ends on its cap is told to have been cut"),
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
