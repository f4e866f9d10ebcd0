"""The worker's side: it does as the head says, in step with it, until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stepscope.engine.clock import Clock
from stepscope.engine.parallel.links.command_wire import Command, Wire
from stepscope.engine.parallel.protocol import (
    ALLOCATE,
    DECODE,
    DECODE_BATCH,
    FREE,
    PREFILL,
    SHUTDOWN,
    WIDTH_OF,
    ProtocolError,
)
from stepscope.engine.parallel.ranks.worker_slots import WorkerSlots

Observer = Callable[[dict[str, Any]], None]

if TYPE_CHECKING:
    from stepscope.engine.parallel.shares.share import Share
    from stepscope.ingest.recorder import Recorder


class Worker:
    """Carries out one command after the other; each is a step of its own in the worker's rows.

    A worker knows slots and tokens, not requests: it writes no rows of batches. `observer` is shown
    its slots as they were when it began to compute, once it has: a step that never ends has no row.
    """

    def __init__(
        self,
        wire: Wire,
        share: Share,
        clock: Clock,
        recorder: Recorder | None = None,
        faults: frozenset[str] = frozenset(),
        observer: Observer | None = None,
    ) -> None:
        self._wire = wire
        self._share = share
        self._clock = clock
        self._recorder = recorder
        self._observer = observer
        self._step = 0
        self._slots = WorkerSlots(share.num_slots, self._note_slot, faults)

    def serve(self) -> None:
        """Carry out commands until the head shuts the worker down."""
        goes_on = True
        while goes_on:
            self._step += 1
            self._wire.link.step = self._step
            self._share.begin(self._step, self._recorder)
            goes_on = self._carry_out(self._wire.receive_command())

    def _carry_out(self, command: Command) -> bool:
        began_ns = self._clock.now_ns()
        if command.name == SHUTDOWN:
            self._slots.free_all()
            return False
        if command.name == ALLOCATE:
            self._share.free(self._slots.allocate(command.slot))
        elif command.name == FREE:
            self._share.free(self._slots.free(command.slot))
        else:
            self._compute(command, began_ns)
        return True

    def _compute(self, command: Command, began_ns: int) -> None:
        held = {
            "ts_ns": began_ns, "step": self._step, "slots": self._slots.owner,
            "slot_tokens": dict(enumerate(self._share.lengths)),
        }  # fmt: skip
        if command.name == PREFILL:
            self._note_step("prefill", self._prefill(command), began_ns)
        else:
            self._note_step("decode", self._decode(command), began_ns)
        if self._observer:
            self._observer(held)

    def _prefill(self, command: Command) -> int:
        slot = self._slots.own(command.slot, PREFILL)
        (num_tokens,) = self._wire.receive_words(1, "length")
        (start,) = self._wire.receive_words(1, "start")
        self._wire.receive_words(1, "full length")
        self._check_length(num_tokens)
        self._share.prefill(slot, start, self._wire.receive_words(num_tokens, "tokens"))
        return num_tokens

    def _decode(self, command: Command) -> int:
        if command.name == DECODE_BATCH:
            return self._decode_batch()
        slot = self._slots.own(command.slot, command.name)
        if command.name == DECODE:
            self._share.decode([slot], [command.word])
            return 1
        width = WIDTH_OF[command.name]
        self._share.verify(slot, self._wire.receive_words(width, "tokens"))
        (num_accepted,) = self._wire.receive_words(1, "verdict")
        self._share.trim(slot, width - num_accepted)
        return width

    def _decode_batch(self) -> int:
        """Decode a row of each slot that the head names: its numbers are the worker's own too."""
        (num_rows,) = self._wire.receive_words(1, "rows")
        self._check_length(num_rows)
        asked = self._wire.receive_words(num_rows, "slots")
        tokens = self._wire.receive_words(num_rows, "tokens")
        for slot in asked:
            self._slots.own(slot, DECODE_BATCH)
        self._share.decode(asked, tokens)
        return num_rows

    def _check_length(self, num_words: int) -> None:
        if not 0 < num_words <= self._share.slot_tokens * self._share.num_slots:
            raise ProtocolError(f"{num_words} words are announced, which is no sensible number")

    def _note_step(self, kind: str, num_tokens: int, began_ns: int) -> None:
        if self._recorder:
            is_prefill = kind == "prefill"
            num_rows = self._share.num_rows
            self._recorder.steps(
                self._step, began_ns, self._clock.now_ns() - began_ns, kind,
                num_rows if is_prefill else 0, 0 if is_prefill else num_rows,
                num_tokens if is_prefill else 0, 0 if is_prefill else num_tokens,
                executed_path=f"{kind}: {self._share.path}",
            )  # fmt: skip

    def _note_slot(self, slot: int, op: str, owner: str, generation: int) -> None:
        if self._recorder:
            ts_ns = self._clock.now_ns()
            self._recorder.allocations(self._step, ts_ns, "slot", slot, op, owner, generation)
