"""`ragged`: a device with one KV region per slot, of which the prompts come through the host.

A step writes the prompts of the requests that it admits, and then decodes one token in all B rows,
one row per slot: a ragged batch, every row at its own position. The row of a slot with nobody in it
is computed too, at token, position and length 0, and *masked*: what it samples is thrown away.

Costs instead of kernels. Times of accesses are when they are issued; the host waits for each, so
one stream tells their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.engine.executors import Execution
from stepscope.engine.executors.simulated import CostModel, sampled
from stepscope.engine.request import EOS_TOKEN
from stepscope.engine.slot_memory import DEVICE, MIRROR, Layout, SlotMemory

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder

HOST_MIRROR, DEVICE_WRITE = "host-mirror", "device-write"


@dataclass(slots=True)
class SlotUsage:
    """What the steps of a run came to; `admit_bytes` is for each step that admitted anybody.

    Its pairs are bytes copied and requests admitted; `num_midstream` is how many of these found
    another slot live.
    """

    num_admits: int = 0
    num_midstream: int = 0
    num_refreshes: int = 0
    num_masked_rows: int = 0
    admit_bytes: list[tuple[int, int]] = field(default_factory=list)


class Ragged:
    """Runs batches on the slots of `layout`; `usage` sums them up.

    `admission` is how prompts get to the device. `host-mirror` writes them to a mirror of all slots
    on the host, which is refreshed before and committed after; `device-write` copies the admitted
    slots alone. A copy takes a nanosecond for `bytes_per_ns` bytes.
    """

    def __init__(
        self,
        cost: CostModel,
        layout: Layout,
        admission: str = HOST_MIRROR,
        *,
        bytes_per_ns: int = 32,
        faults: frozenset[str] = frozenset(),
    ) -> None:
        self.usage = SlotUsage()
        self._cost = cost
        self._memory = SlotMemory(layout, clears="recycle-without-clearing" not in faults)
        self._admission = admission
        self._bytes_per_ns = bytes_per_ns
        self._faults = faults

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Write the prompts of `batch`, then decode a token in every row that goes on."""
        began_ns = clock.now_ns()
        self._memory.begin(step, clock, recorder)
        tokens = sampled(batch)
        admitted = [row for row in batch.rows if not row.num_computed]
        if admitted:
            self._admit(admitted, clock, has_live=len(admitted) < len(batch.rows))
        live = []
        for row in batch.rows:
            if self._goes_on(row, tokens[row.request.id]):
                live.append(row)
            else:
                tokens[row.request.id] = tokens[row.request.id][:1]
        num_masked = self._decode(live, clock) if live else 0
        if recorder:
            recorder.counters(step, began_ns, "batch", "masked rows", "rows", float(num_masked))
        path = f"{self._admission}, ragged-decode" if admitted else "ragged-decode"
        return Execution(clock.now_ns() - began_ns, path, tokens)

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: the engine itself knows who has which slot."""
        return {}

    def _admit(self, admitted: Sequence[Row], clock: Clock, *, has_live: bool) -> None:
        memory, bytes_before = self._memory, self._memory.bytes_copied
        is_mirrored = self._admission == HOST_MIRROR
        if is_mirrored and has_live and "skip-mirror-refresh" not in self._faults:
            self.usage.num_refreshes += 1
            memory.refresh()
            self._wait_for_copy(bytes_before, clock)
        bytes_refreshed = memory.bytes_copied
        for row in admitted:
            clock.advance(self._cost.base_ns + self._cost.prefill_token_ns * _num_prompt(row))
            memory.write_prompt(MIRROR if is_mirrored else DEVICE, _slot(row), _num_prompt(row))
        if is_mirrored:
            memory.commit()
        self._wait_for_copy(bytes_refreshed, clock)
        self.usage.num_admits += len(admitted)
        self.usage.num_midstream += len(admitted) * has_live
        self.usage.admit_bytes.append((memory.bytes_copied - bytes_before, len(admitted)))

    def _decode(self, live: Sequence[Row], clock: Clock) -> int:
        num_rows = self._memory.layout.num_slots
        for row in live:
            self._memory.decode(_slot(row), row.num_kv_tokens - 1)
        clock.advance(
            self._cost.base_ns
            + self._cost.decode_row_ns * num_rows
            + self._cost.kv_token_ns * sum(row.num_kv_tokens for row in live)
        )
        self.usage.num_masked_rows += num_rows - len(live)
        return num_rows - len(live)

    def _goes_on(self, row: Row, tokens: Sequence[int]) -> bool:
        """Whether the row decodes, which one does not whose prompt already gave its last token."""
        if row.num_computed:
            return True
        is_over = tokens[0] == EOS_TOKEN and "token-after-eos" not in self._faults
        return len(tokens) > 1 and not is_over

    def _wait_for_copy(self, bytes_before: int, clock: Clock) -> None:
        clock.advance((self._memory.bytes_copied - bytes_before) // self._bytes_per_ns)


def _num_prompt(row: Row) -> int:
    return row.num_tokens - row.num_fed_back


def _slot(row: Row) -> int:
    assert row.request.slot is not None, "the engine gives a slot to whom it admits"
    return row.request.slot
