"""Who is shown what the engine holds: at every step, or at every change that is recorded too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from stepscope.ingest.schema import OF_STATE

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

Observer = Callable[[dict[str, Any]], None]
"""Is given a snapshot whenever a batch was formed."""


@runtime_checkable
class ChangeObserver(Protocol):
    """An observer that is also told of every row of the scheduler's state, just behind it."""

    def __call__(self, snapshot: dict[str, Any]) -> None:
        """Take what the engine holds as a batch was formed."""
        ...

    def changed(self, seq: int, snapshot: dict[str, Any]) -> None:
        """Take what the engine holds behind the row that bears `seq`."""
        ...


@runtime_checkable
class RankObserver(Protocol):
    """An observer of a run of several ranks, which has another for each rank but the first."""

    def __call__(self, snapshot: dict[str, Any]) -> None:
        """Take what rank 0 holds."""
        ...

    def of_rank(self, rank: int) -> Observer:
        """Give who is shown what another rank holds."""
        ...


def observer_of(observer: Observer | None, rank: int) -> Observer | None:
    """Give who is shown what a rank holds: of those behind the first only if somebody asks."""
    if not rank:
        return observer
    return observer.of_rank(rank) if isinstance(observer, RankObserver) else None


class Announced:
    """A recorder each of whose rows of the scheduler's state is followed by a call with its `seq`.

    It counts along with the recorder, so it has to be the one that all such rows go through.
    """

    def __init__(self, recorder: Recorder, tell: Callable[[int], None]) -> None:
        self._recorder = recorder
        self._tell = tell
        self._seq = 0
        for table in OF_STATE:
            setattr(self, table.name, self._with_a_call(getattr(recorder, table.name)))

    def in_two(self, *asked: Any) -> tuple[Callable[..., Any], Callable[..., None]]:
        """Build two functions as the recorder does, of which the first makes the row."""
        begin, end = self._recorder.in_two(*asked)
        return self._with_a_call(begin), end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def _with_a_call(self, record: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_tell(*args: Any, **kwargs: Any) -> Any:
            recorded = record(*args, **kwargs)
            self._seq += 1
            self._tell(self._seq)
            return recorded

        return record_and_tell


def announced(recorder: Recorder, tell: Callable[[int], None]) -> Recorder:
    """Give a recorder that calls `tell` behind every row of the scheduler's state."""
    return cast("Recorder", Announced(recorder, tell))
