"""What the engine held at a moment of the trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from stepscope.app.debug.held.thread_phases import Phases

Block = tuple[int, int | None]
"""A task, and which of its blocks, where that is known."""
CoreState = Literal["running", "held", "idle"]


class CoreSlots(NamedTuple):
    """What a core holds in each of its slots, as (task, block); None where it is free.

    `state` is what the core does, as `ingest.derive.states` defines it: a block may have the
    running slot and not have begun, and the core is then held.
    """

    running: Block | None = None
    pending: Block | None = None
    state: CoreState = "idle"

    @property
    def blocks(self) -> Iterator[Block]:
        """What it has in either slot."""
        return (block for block in (self.running, self.pending) if block is not None)


def cores_line(cores: Mapping[int, CoreSlots]) -> str:
    """How many cores execute a block, and how many are held by one that has not begun."""
    running, held = (
        sum(slots.state == state for slots in cores.values()) for state in ("running", "held")
    )
    return f"cores running {running:,} of {len(cores):,}" + (f", held {held:,}" if held else "")


class BatchEntry(NamedTuple):
    """A row of the batch: the request, its phase, and how many of its tokens are computed."""

    request: str
    phase: str
    num_tokens: int


class Forming(NamedTuple):
    """The step whose batch is being formed, and the rows that it has until now."""

    step: int
    batch: tuple[BatchEntry, ...]


@dataclass(frozen=True, slots=True)
class State:
    """Queue, running requests, batch, slots, KV blocks and the device; None where it is not known.

    `waiting` is in the order of the queue, `running` in the order of admission, `batch` in that of
    its rows. `slots` and `kv_blocks` map what is taken to the request that holds it; `cores` maps
    every core that the trace knows to its slots, and `slot_tokens` every slot to how many tokens
    lie in it, whoever has it. `ready` has the tasks of each ready queue that has any, in its order,
    and `threads` what each thread of the device's scheduler does and since when.
    `seq` is the last row that is taken into account.
    `forming` is the step behind `step`, once something of it is told and its batch is not formed.
    """

    ts_ns: int
    step: int | None
    waiting: tuple[str, ...] | None = None
    running: tuple[str, ...] | None = None
    batch: tuple[BatchEntry, ...] | None = None
    slots: Mapping[int, str] | None = None
    kv_blocks: Mapping[int, str] | None = None
    cores: Mapping[int, CoreSlots] | None = None
    seq: int | None = None
    forming: Forming | None = None
    slot_tokens: Mapping[int, int] | None = None
    ready: Mapping[str, tuple[int, ...]] | None = None
    threads: Phases | None = None

    def slot_text(self, slot: int) -> str:
        """A slot that is held, by whom, and how many tokens lie in it where that is told."""
        owner = (self.slots or {})[slot]
        tokens = (self.slot_tokens or {}).get(slot)
        return f"{slot}: {owner}" + ("" if tokens is None else f", {tokens:,} tokens")

    def as_dict(self) -> dict[str, Any]:
        """The state in the shape of the engine's own snapshot; what is not known is left out.

        While a batch is being formed, that is the engine's step and batch.
        """
        step, batch = self.forming or (self.step, self.batch)
        shaped: dict[str, Any] = {
            "waiting": _listed(self.waiting),
            "running": _listed(self.running),
            "batch": None if batch is None else [list(entry) for entry in batch],
            "slots": None if self.slots is None else dict(self.slots),
            "slot_tokens": None if self.slot_tokens is None else dict(self.slot_tokens),
            "kv_blocks": None if self.kv_blocks is None else dict(self.kv_blocks),
            "cores": None if self.cores is None else _cores(self.cores),
            "ready": _each_listed(self.ready),
            "threads": _each_listed(self.threads),
        }
        known = {name: held for name, held in shaped.items() if held is not None}
        return {"ts_ns": self.ts_ns, "step": step, **known}


def _listed(ids: tuple[str, ...] | None) -> list[str] | None:
    return None if ids is None else list(ids)


def _each_listed(held: Mapping[str, Iterable[Any]] | None) -> dict[str, list[Any]] | None:
    return None if held is None else {name: list(each) for name, each in held.items()}


def _cores(cores: Mapping[int, CoreSlots]) -> dict[int, dict[str, list[int | None] | None]]:
    return {
        core: {"running": _held(slots.running), "pending": _held(slots.pending)}
        for core, slots in cores.items()
    }


def _held(block: Block | None) -> list[int | None] | None:
    return None if block is None else list(block)
