"""What head and workers are told before they start; a worker process gets it as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from stepscope.engine.parallel.expert_choices import BY_WIDTH, expert_choice
from stepscope.engine.parallel.protocol import VERSIONS, Codebook
from stepscope.ingest.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ParallelConfig:
    """Sizes and versions of a head and its workers; the same on each of them.

    `decode` names one of `shares.decodes`, how the rows of a step are computed, `experts` one of
    `expert_choices`, how the code path of the experts is chosen for a decode, and `model` one of
    `shares.models`. Every so many prompts fails on the head once it is
    computed, with `failing_prompts` above 0. Rank 0 speaks `head_version` of the protocol, the
    others `worker_version`.
    """

    world_size: int = 2
    num_slots: int = 4
    slot_tokens: int = 128
    head_version: int = 2
    worker_version: int = 2
    decode: str = "batched"
    experts: str = BY_WIDTH.name
    model: str = "plain"
    failing_prompts: int = 0
    codebook: Codebook = field(default_factory=Codebook)
    seed: int = 0
    faults: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.world_size < 1 or self.num_slots < 1 or self.slot_tokens < 1:
            raise ConfigError("there must be at least one rank, one slot, and one token in a slot")
        if not {self.head_version, self.worker_version} <= {*VERSIONS}:
            raise ConfigError(f"the protocol has the versions {VERSIONS} only")
        expert_choice(self.experts)
        if self.head_version == 1 and self.num_slots > 1:
            raise ConfigError(
                "version 1 of the protocol sends no slots, so it runs one sequence only"
            )

    def version(self, rank: int) -> int:
        """Return the version that a rank speaks."""
        return self.worker_version if rank else self.head_version

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        faults = sorted(self.faults)
        return {**asdict(self), "codebook": self.codebook.as_dict(), "faults": faults}

    @classmethod
    def from_dict(cls, fields_of: Mapping[str, Any]) -> ParallelConfig:
        """Return the configuration that `as_dict` gave."""
        codebook = Codebook.from_dict(fields_of["codebook"])
        faults = frozenset(fields_of["faults"])
        return cls(**{**fields_of, "codebook": codebook, "faults": faults})
