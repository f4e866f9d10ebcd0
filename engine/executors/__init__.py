"""What runs a batch, behind one Protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stepscope.ingest.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder


class ExecutionFailed(StepscopeError):
    """A batch could not be run; what ran before it is recorded."""


class Digest(NamedTuple):
    """The logits that a token was sampled from, and, where it was run, those of the request alone.

    Each is a name that is the same for logits that are the same, and `nan` for some that are none.
    """

    logits: str
    solo: str | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """What running a batch came to.

    `path` names the code that ran; `tokens` holds the tokens sampled for each request whose row
    reached the end of what is known of it (an unfinished prefill samples nothing), in order.
    `logits_rows` are the rows of logits that it computed, None for one per request that sampled.
    `digests` are those of the tokens, in the same order, where there were logits.
    `failed` says which requests could not be computed, and why: they end there.
    `stop` says why nothing can run any more, if so: the engine then ends.
    `gap_ns` is how long the host then takes until it can form the next batch.
    """

    dur_ns: int
    path: str
    tokens: dict[str, tuple[int, ...]]
    logits_rows: int | None = None
    digests: Mapping[str, tuple[Digest, ...]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    stop: str | None = None
    gap_ns: int = 0


class Executor(Protocol):
    """Runs one batch after the other and advances the clock by what each costs."""

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Run `batch` as step `step`; an empty batch costs at least 1 ns too."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return what the executor adds to the engine's snapshot, empty if nothing."""
        ...
