"""The logits of a step's rows on the device, and how each gets to whoever samples from it.

A decode of one sequence leaves its logits in row 0. Where sequences are decoded one after the
other, each one's have to be gone from there before the next one's arrive: copied to a row of their
own on the device, or to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.engine.parallel.shares.access_log import COMPUTE, COPY, HOST, AccessLog

if TYPE_CHECKING:
    from stepscope.engine.model.numpy_decoder import Array

DEVICE_ROWS, HOST_ROWS = "logits", "host-logits"


class LogitsRows:
    """Rows of logits on the device and on the host, each with the epoch of its contents.

    With `is_ordered` off a copy to the host does not wait for the stream that computes: it takes
    what is in the row when it is asked for, while the row's new contents are still being computed.
    """

    def __init__(self, log: AccessLog, *, is_ordered: bool = True) -> None:
        self._log = log
        self._is_ordered = is_ordered
        self._rows: dict[tuple[str, int], tuple[Array, int]] = {}
        self._before: dict[int, tuple[Array, int]] = {}

    def write(self, row: int, values: Array, segment: int) -> None:
        """Let the device compute a row, for row `segment` of the batch."""
        written = values, self._log.next_epoch()
        self._before[row] = self._rows.get((DEVICE_ROWS, row), (values * 0, 0))
        self._rows[DEVICE_ROWS, row] = written
        self._log.access(COMPUTE, "write", DEVICE_ROWS, row, segment, written[1])

    def move(self, source: int, target: int, segment: int) -> None:
        """Copy a row to another one, on the device, behind what computes it."""
        values, epoch = self._rows[DEVICE_ROWS, source]
        self._log.access(COMPUTE, "read", DEVICE_ROWS, source, segment, epoch)
        self._rows[DEVICE_ROWS, target] = values, epoch
        self._log.access(COMPUTE, "write", DEVICE_ROWS, target, segment, epoch)

    def to_host(self, source: int, target: int, segment: int) -> None:
        """Copy a row to a row of the host's, on a stream of its own, and wait for it."""
        if self._is_ordered:
            self._log.order(COMPUTE, COPY, "computed")
        copied = self._rows[DEVICE_ROWS, source] if self._is_ordered else self._before[source]
        self._log.access(COPY, "read", DEVICE_ROWS, source, segment, copied[1])
        self._rows[HOST_ROWS, target] = copied
        self._log.access(COPY, "write", HOST_ROWS, target, segment, copied[1])
        self._log.order(COPY, HOST, "copied")

    def wait(self) -> None:
        """Let the host wait for all that was computed."""
        self._log.order(COMPUTE, HOST, "computed")

    def read(self, row: int, segment: int, buffer: str = DEVICE_ROWS) -> Array:
        """Return a row, for the host to sample from."""
        values, epoch = self._rows[buffer, row]
        self._log.access(HOST, "read", buffer, row, segment, epoch)
        return values
