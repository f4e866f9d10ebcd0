"""`ragged`: a device with one KV region per slot, of which the prompts come through the host.

A step writes the prompts of the requests that it admits, and then decodes one token in all B rows,
one row per slot: a ragged batch, every row at its own position. The row of a slot with nobody in it
is computed too, at token, position and length 0, and *masked*: what it samples is thrown away.

What computes a row, with costs or on a decoder, is behind a Protocol. Times of accesses are when
they are issued; the host waits for each, so one stream tells their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.engine.executors import Execution
from stepscope.engine.executors.slot_model import Sampled, SlotModel, slot_of
from stepscope.engine.memory.slot_memory import DEVICE, MIRROR, Layout, SlotMemory

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder

HOST_MIRROR, DEVICE_WRITE = "host-mirror", "device-write"
PER_ADMISSION, PER_STEP = ROUND_TRIPS = ("per-admission", "per-step")


@dataclass(slots=True)
class SlotUsage:
    """What the steps of a run came to; `admit_bytes` is for each time that anybody was let in.

    Its pairs are bytes copied and requests admitted; `num_midstream` is how many of these found
    another slot live.
    """

    num_admits: int = 0
    num_midstream: int = 0
    num_refreshes: int = 0
    num_masked_rows: int = 0
    admit_bytes: list[tuple[int, int]] = field(default_factory=list)


class Ragged:
    """Runs batches on the slots of `layout`, which `model` computes; `usage` sums them up.

    `admission` is how prompts get to the device. `host-mirror` writes them to a mirror of all slots
    on the host, which is refreshed before and committed after; `device-write` copies the admitted
    slots alone. With the `round_trip` `per-admission` the mirror goes there and back for each of
    them, with `per-step` once for all that a step lets in.
    """

    def __init__(
        self,
        model: SlotModel,
        layout: Layout,
        admission: str = HOST_MIRROR,
        faults: frozenset[str] = frozenset(),
        round_trip: str = PER_ADMISSION,
    ) -> None:
        self.usage = SlotUsage()
        self._model = model
        self._memory = SlotMemory(layout, clears="recycle-without-clearing" not in faults)
        self._admission = admission
        self._faults = faults
        self._is_per_step = round_trip == PER_STEP

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Write the prompts of `batch`, then decode a token in every row that goes on."""
        began_ns = clock.now_ns()
        self._memory.begin(step, clock, recorder)
        sampled: dict[str, list[Sampled]] = {row.request.id: [] for row in batch.rows}
        with self._model.step(batch, step, clock):
            if admitted := [row for row in batch.rows if not row.num_computed]:
                has_live = len(admitted) < len(batch.rows)
                for together in [admitted] if self._is_per_step else ([row] for row in admitted):
                    self._admit(together, sampled, has_live=has_live)
            live = [row for row in batch.rows if self._goes_on(row, sampled[row.request.id])]
            if live:
                self._decode(live, sampled)
        num_masked = self._memory.layout.num_slots - len(live) if live else 0
        self.usage.num_masked_rows += num_masked
        if recorder:
            recorder.counters(step, began_ns, "batch", "masked rows", "rows", float(num_masked))
        path = f"{self._admission}, ragged-decode" if admitted else "ragged-decode"
        return Execution(
            clock.now_ns() - began_ns,
            f"{self._model.name}{path}",
            {request: tuple(token for token, _ in each) for request, each in sampled.items()},
            digests={
                request: tuple(name for _, name in each if name)
                for request, each in sampled.items()
            },
        )

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: the engine itself knows who has which slot."""
        return {}

    def _admit(
        self, admitted: Sequence[Row], sampled: dict[str, list[Sampled]], *, has_live: bool
    ) -> None:
        memory, bytes_before = self._memory, self._memory.bytes_copied
        is_mirrored = self._admission == HOST_MIRROR
        if is_mirrored and has_live and "skip-mirror-refresh" not in self._faults:
            self.usage.num_refreshes += 1
            memory.refresh()
            self._model.refresh(memory.bytes_copied - bytes_before)
        bytes_refreshed = memory.bytes_copied
        for row in admitted:
            sampled[row.request.id].append(self._model.prefill(row, slot_of(row)))
            memory.write_prompt(MIRROR if is_mirrored else DEVICE, slot_of(row), _num_prompt(row))
        if is_mirrored:
            memory.commit()
        self._model.commit(memory.bytes_copied - bytes_refreshed)
        self.usage.num_admits += len(admitted)
        self.usage.num_midstream += len(admitted) * has_live
        self.usage.admit_bytes.append((memory.bytes_copied - bytes_before, len(admitted)))

    def _decode(self, live: Sequence[Row], sampled: dict[str, list[Sampled]]) -> None:
        for row in live:
            self._memory.decode(slot_of(row), row.num_kv_tokens - 1)
        for row, each in zip(live, self._model.decode(live), strict=True):
            sampled[row.request.id].append(each)

    def _goes_on(self, row: Row, sampled: Sequence[Sampled]) -> bool:
        """Whether the row decodes, which one does not whose prompt already gave its last token."""
        if row.num_computed:
            return True
        is_end = row.request.is_end(sampled[0][0], row.request.num_generated + 1)
        is_over = is_end and "token-after-eos" not in self._faults
        return row.num_fed_back > 0 and not is_over


def _num_prompt(row: Row) -> int:
    return row.num_tokens - row.num_fed_back
