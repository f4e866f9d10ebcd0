"""The KV of all slots on the device, its mirror on the host, and who reads and writes which bytes.

Contents are not kept, versions are: `epoch` counts the writes of the whole run, and a slot's epoch
is that of the last write to it. A copy carries the epoch along. So an epoch that goes back is a
slot that lost tokens, and one from before its owner's first write is another request's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.engine.clock import Clock

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

DEVICE, MIRROR = "device-kv", "host-mirror"


@dataclass(frozen=True, slots=True)
class Layout:
    """`num_slots` regions, one after the other, of `slot_tokens` tokens at `token_bytes` each."""

    num_slots: int
    slot_tokens: int
    token_bytes: int

    @property
    def slot_bytes(self) -> int:
        """Bytes of one slot."""
        return self.slot_tokens * self.token_bytes

    def span(self, slot: int, first: int = 0, last: int | None = None) -> tuple[int, int]:
        """Return the first byte, and one past the last, of a slot's tokens `first` to `last`."""
        start = slot * self.slot_bytes
        end = self.slot_tokens if last is None else last
        return start + first * self.token_bytes, start + end * self.token_bytes


class SlotMemory:
    """Both buffers, slot by slot; `bytes_copied` is what crossed between host and device.

    With `clears` a prompt is written with the rest of its slot; without, the tokens that an earlier
    owner left behind it stay, and stay visible.
    """

    def __init__(self, layout: Layout, *, clears: bool = True) -> None:
        self.layout = layout
        self.bytes_copied = 0
        self._clears = clears
        self._epoch = 0
        self._epochs = {buffer: [0] * layout.num_slots for buffer in (DEVICE, MIRROR)}
        self._lengths = [0] * layout.num_slots
        self._left_behind = [(0, 0)] * layout.num_slots
        self._recorder: Recorder | None = None
        self._clock: Clock | None = None
        self._step = 0

    def begin(self, step: int, clock: Clock, recorder: Recorder | None) -> None:
        """Write accesses from now on to `recorder`, as of `step`, at the times of `clock`."""
        self._step, self._clock, self._recorder = step, clock, recorder

    def refresh(self) -> None:
        """Copy every slot from the device to the mirror."""
        self._copy_all(DEVICE, MIRROR)

    def commit(self) -> None:
        """Copy every slot from the mirror to the device."""
        self._copy_all(MIRROR, DEVICE)

    def write_prompt(self, buffer: str, slot: int, num_tokens: int) -> None:
        """Write a prompt to a slot of `buffer`; straight to the device, it is copied there."""
        last = None if self._clears else num_tokens
        if not self._clears:
            self._left_behind[slot] = (self._lengths[slot], self._epochs[DEVICE][slot])
        self._write(buffer, slot, 0, last)
        self._lengths[slot] = num_tokens
        if buffer == DEVICE:
            first, end = self.layout.span(slot, 0, last)
            self.bytes_copied += end - first

    def decode(self, slot: int, position: int) -> None:
        """Read a live slot up to the token at `position`, and write that token's KV."""
        self._access("read", DEVICE, slot, 0, position, self._epochs[DEVICE][slot])
        length, epoch = self._left_behind[slot]
        if length > position + 1:
            self._access("read", DEVICE, slot, position + 1, length, epoch)
        self._write(DEVICE, slot, position, position + 1)
        self._lengths[slot] = position + 1

    def _copy_all(self, source: str, target: str) -> None:
        for slot in range(self.layout.num_slots):
            epoch = self._epochs[source][slot]
            self._access("read", source, slot, 0, None, epoch)
            self._access("write", target, slot, 0, None, epoch)
        self._epochs[target][:] = self._epochs[source]
        self.bytes_copied += self.layout.num_slots * self.layout.slot_bytes

    def _write(self, buffer: str, slot: int, first: int, last: int | None) -> None:
        self._epoch += 1
        self._epochs[buffer][slot] = self._epoch
        self._access("write", buffer, slot, first, last, self._epoch)

    def _access(
        self, op: str, buffer: str, slot: int, first: int, last: int | None, epoch: int
    ) -> None:
        if self._recorder and self._clock:
            begin, end = self.layout.span(slot, first, last)
            self._recorder.accesses(
                self._step, self._clock.now_ns(), buffer, begin, end, op, "host", None, epoch
            )
