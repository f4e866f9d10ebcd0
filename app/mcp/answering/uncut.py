"""What a tool answers, before it is cut to a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

if TYPE_CHECKING:
    import polars as pl


class NotRecorded(NamedTuple):
    """What the trace does not hold, and what would record it: both in our words alone."""

    what: str
    recorded_by: str


class Rows(Protocol):
    """What a page is cut from; a slice is made only when it is shown."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, which: slice, /) -> Sequence[Any]:
        """Some of them, in plain values."""
        ...


class FrameRows:
    """The rows of a frame: mappings by the names of its columns, or lists where `as_lists`."""

    def __init__(self, frame: pl.DataFrame, *, as_lists: bool = False) -> None:
        self._frame, self._as_lists = frame, as_lists

    def __len__(self) -> int:
        return len(self._frame)

    @overload
    def __getitem__(self, which: slice, /) -> list[Any]: ...
    @overload
    def __getitem__(self, which: int, /) -> Any: ...
    def __getitem__(self, which: slice | int, /) -> Any:
        if isinstance(which, int):
            return self[which : which + 1][0]
        some = self._frame[which]
        return some.rows() if self._as_lists else some.to_dicts()


@dataclass(frozen=True, slots=True)
class Answer:
    """Facts about it, and the rows that pages are cut from; both are as recorded.

    `rows_are`, `notes`, `left_out` and what is not recorded are our own words, with no text of a
    trace in them: they stand where a reader takes them for ours.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows = ()
    rows_are: str = ""
    not_recorded: tuple[NotRecorded, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    is_ours: bool = False
    """Whether the rows are lines of a page of ours, which are given as they are."""
