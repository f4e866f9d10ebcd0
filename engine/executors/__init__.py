"""What runs a batch, behind one Protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Execution:
    """What running a batch came to.

    `path` names the code that ran; `tokens` holds the tokens sampled for each request whose row
    reached the end of what is known of it (an unfinished prefill samples nothing), in order.
    `logits_rows` are the rows of logits that it computed, None for one per request that sampled.
    `stop` says why nothing can run any more, if so: the engine then ends.
    """

    dur_ns: int
    path: str
    tokens: dict[str, tuple[int, ...]]
    logits_rows: int | None = None
    stop: str | None = None


class Executor(Protocol):
    """Runs one batch after the other and advances the clock by what each costs."""

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Run `batch` as step `step`; an empty batch costs at least 1 ns too."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return what the executor adds to the engine's snapshot, empty if nothing."""
        ...
