"""What the engine is told before it starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from stepscope.engine.faults import check_faults
from stepscope.engine.requests.request import EOS_TOKEN
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.times import MS

OPTIONAL = ("prefix_cache", "deferred_output", "async_dependencies")
"""Parts of an engine that a policy must know of where they are on."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Sizes and limits of an engine, and the faults that are switched on in it.

    `num_slots` 0 means that requests need no slot; `num_kv_blocks` 0, which takes slots, that the
    KV is not paged. `timeout_ns` ends the run: clients have timed out by then, and what is
    unfinished is aborted. `idle_ns` is how long a step lasts in which nothing could be scheduled,
    `max_idle_steps` in a row, and `max_actions_per_request` in one step, are what the watchdog
    allows a scheduler that makes no progress.

    With `deferred_output` the host learns a step late which tokens were sampled, and forms the next
    batch meanwhile; with `prefix_cache` prompts that begin alike share the KV of their beginning.
    With `async_dependencies` a request is skipped while it waits for its grammar, or for KV that is
    elsewhere.
    """

    num_kv_blocks: int = 1024
    block_size: int = 16
    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256
    num_slots: int = 0
    timeout_ns: int | None = None
    idle_ns: int = MS
    max_idle_steps: int = 1000
    max_actions_per_request: int = 64
    deferred_output: bool = False
    prefix_cache: bool = False
    async_dependencies: bool = False
    faults: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        paged = () if self.num_slots and not self.num_kv_blocks else ("num_kv_blocks",)
        least = (*paged, "block_size", "max_num_batched_tokens", "max_num_seqs", "idle_ns")
        for name in least:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, it must be at least 1")
        if self.num_slots and self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                f"max_num_batched_tokens {self.max_num_batched_tokens} is below max_num_seqs "
                f"{self.max_num_seqs}: a decode of each would not fit a step"
            )
        check_faults(self.faults)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them, for a manifest, and what ends an output."""
        return {**asdict(self), "faults": sorted(self.faults), "eos_token": EOS_TOKEN}
