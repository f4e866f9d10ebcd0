"""How the rows of a decode step are computed: together, or each by itself and its logits moved on.

A row that is decoded by itself leaves its logits in row 0, from where they have to be gone before
the next one's arrive. Adding another way is one class and one line in `DECODES`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from stepscope.engine.named import named
from stepscope.engine.parallel.shares.logits import HOST_ROWS, LogitsRows

if TYPE_CHECKING:
    from stepscope.engine.model.numpy_decoder import Array
    from stepscope.engine.parallel.costs import Costs


class Staging(Protocol):
    """Where the logits of rows go that are decoded one after another; rows are those of a step.

    `segment` is the row of the batch that a row is.
    """

    def in_order(self, num_rows: int) -> Sequence[int]:
        """Return the rows in the order in which they are to be decoded."""

    def stage_ns(self, row: int) -> int:
        """Return how long it takes to move a row."""

    def stage(self, row: int, segment: int) -> None:
        """Move the logits in row 0 to where the next ones do not go."""

    def read(self, row: int, segment: int) -> Array:
        """Return the logits of a row, once all are decoded."""


class Decode(Protocol):
    """How several rows are decoded; `name` is as a configuration spells it."""

    name: str

    def staging(self, logits: LogitsRows, costs: Costs, faults: Collection[str]) -> Staging | None:
        """Return where rows go that are decoded one after another, None where none are."""


class Batched(Decode):
    """All rows together, each into a row of logits of its own."""

    name = "batched"

    def staging(self, logits: LogitsRows, costs: Costs, faults: Collection[str]) -> None:
        """Return None: nothing has to be moved."""


class HostStaging(Decode):
    """One after the other, with each row of logits copied to the host."""

    name = "host-staging"

    def staging(self, logits: LogitsRows, costs: Costs, faults: Collection[str]) -> Staging:
        """Return rows of the host's."""
        return _OnHost(logits, costs.host_staging_ns)


class DeviceStaging(Decode):
    """One after the other, with each row of logits copied to a row of its own on the device."""

    name = "device-staging"

    def staging(self, logits: LogitsRows, costs: Costs, faults: Collection[str]) -> Staging:
        """Return rows of the device's."""
        takes_row_0 = "every-row-samples-row-0" in faults
        return _OnDevice(logits, costs.device_staging_ns, takes_row_0=takes_row_0)


class _OnHost:
    def __init__(self, logits: LogitsRows, row_ns: int) -> None:
        self._logits, self._row_ns = logits, row_ns

    def in_order(self, num_rows: int) -> Sequence[int]:
        return range(num_rows)

    def stage_ns(self, row: int) -> int:
        del row
        return self._row_ns

    def stage(self, row: int, segment: int) -> None:
        self._logits.to_host(0, row, segment)

    def read(self, row: int, segment: int) -> Array:
        return self._logits.read(row, segment, HOST_ROWS)


class _OnDevice:
    """The last row is decoded first, so that the first can stay in row 0."""

    def __init__(self, logits: LogitsRows, row_ns: int, *, takes_row_0: bool) -> None:
        self._logits, self._row_ns, self._takes_row_0 = logits, row_ns, takes_row_0

    def in_order(self, num_rows: int) -> Sequence[int]:
        return range(num_rows)[::-1]

    def stage_ns(self, row: int) -> int:
        return self._row_ns if self._moves(row) else 0

    def stage(self, row: int, segment: int) -> None:
        if self._moves(row):
            self._logits.move(0, row, segment)

    def read(self, row: int, segment: int) -> Array:
        return self._logits.read(0 if self._takes_row_0 else row, segment)

    def _moves(self, row: int) -> bool:
        return row > 0 and not self._takes_row_0


BATCHED, HOST_STAGING, DEVICE_STAGING = Batched(), HostStaging(), DeviceStaging()
DECODES: tuple[Decode, ...] = (BATCHED, HOST_STAGING, DEVICE_STAGING)


def decode_kind(name: str) -> Decode:
    """Return the kind of that name; ConfigError naming all of them for any other."""
    return named(name, DECODES, "kind of decode")
