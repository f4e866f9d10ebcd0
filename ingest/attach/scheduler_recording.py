"""What an adapter tells of an engine's scheduler, whichever engine it is.

An adapter finds these moments in an engine and calls them; `recorded.py` writes them down. Times
are nanoseconds of the recorder's clock. What is told of one call of the scheduler has one time:
when the batch had been formed. Nothing here raises, and nothing looks at an engine's own objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from stepscope.ingest.recording.lasting import BatchRow


class LeftOut(NamedTuple):
    """Why a request is not in the batch; `resource` is of `schema.WHAT_BLOCKS`, None: not known."""

    request: str
    resource: str | None
    reason: str
    needed: int | None = None
    available: int | None = None
    holder: str | None = None


class BlockChange(NamedTuple):
    """KV blocks that change hands, or whose contents the prefix cache can find or no longer can."""

    op: str
    ids: list[int]
    owner: str
    group: int | None = None
    hashes: list[str] | None = None
    source: int | None = None


class Counts(NamedTuple):
    """What is known of a step when its batch was formed: columns of `steps`."""

    kind: str
    num_prefill_reqs: int | None = None
    num_decode_reqs: int | None = None
    num_prefill_tokens: int | None = None
    num_decode_tokens: int | None = None
    token_budget: int | None = None
    num_waiting: int | None = None
    num_running: int | None = None
    kv_blocks_free: int | None = None
    kv_blocks_total: int | None = None
    kv_blocks_cached: int | None = None
    reserve_ratio: float | None = None


class Gave(NamedTuple):
    """What a row with drafts gave: outputs from a position on, and how many drafts were right."""

    request: str
    position: int
    num_outputs: int
    num_accepted: int | None


class Step(Protocol):
    """A step whose batch was formed."""

    number: int
    formed_ns: int


class SchedulerRecording(Protocol):
    """What is told of one scheduler, by one thread."""

    def now_ns(self) -> int:
        """Give the time, on the recording's clock."""

    def event(self, event: str, request: str, ts_ns: int, **columns: Any) -> None:
        """Something happened to a request: `lifecycle`'s events and columns."""

    def arrived(
        self, ts_ns: int, request: str, queue_index: int | None, prompt_len: int,
        max_tokens: int | None, priority: int | None, external_id: str | None, lora: str | None,
    ) -> None:  # fmt: skip
        """A request arrived, and has no outputs."""

    def events(self, ts_ns: int, told: Iterable[tuple[str, str, int | None, str | None]]) -> None:
        """Something happened to each of several requests: the request, the event, how many tokens
        it had generated, the cause.
        """

    def blocks(self, ts_ns: int, changes: Iterable[BlockChange]) -> None:
        """KV blocks changed hands, in this order."""

    def left_out(self, ts_ns: int, left: Iterable[LeftOut]) -> None:
        """These are not in the batch that is being formed. It holds until something else is told
        of a request: who was left out for the same reason before need not be told again.
        """

    def decided(self, ts_ns: int, verdict: str, left: LeftOut) -> None:
        """Something else was decided about a request, such as to preempt it."""

    def queue_order(self, ts_ns: int, requests: Sequence[str]) -> None:
        """The waiting queue was sorted anew: this is its order now."""

    def formed_again(
        self, ts_ns: int, counts: Sequence[Any], left: Sequence[int] = (), requests: list[str] = ...
    ) -> Step:
        """A batch was formed: that of the step before, each request one decoded token on, without
        the rows at the places of those who `left`, lowest first. Where there are such, `requests`
        are those who stay, in their order: the list is not changed.

        It is told at most steps: `counts` is `Counts`, or a bare tuple of all of its columns.
        """

    def formed(self, ts_ns: int, rows: Sequence[BatchRow], counts: Counts) -> Step:
        """A batch was formed, of these rows in this order; each gives one output at most."""

    def formed_drafts(self, ts_ns: int, rows: Sequence[BatchRow], counts: Counts) -> Step:
        """A batch was formed whose rows may give several outputs each: drafts that are accepted."""

    def formed_from(
        self, ts_ns: int, left: Collection[str], rows: Sequence[BatchRow], counts: Counts
    ) -> Step:
        """A batch was formed: that of the step before without `left`, each request one decoded
        token on, but for `rows`, in their place where they were in it, else behind it.
        """

    def ended(
        self, step: Step, ts_ns: int, without: Collection[str] = (), path: str | None = None,
        logits_rows: int | None = None,
    ) -> None:  # fmt: skip
        """A step's outputs were taken: those of its rows with a position, but of `without`.

        A step begins when its batch was formed, or when the step before it has ended. `path` is
        the code path that ran, `logits_rows` how many rows of logits were computed.
        """

    def ended_drafts(
        self, step: Step, ts_ns: int, gave: Iterable[Gave], path: str | None = None,
        logits_rows: int | None = None,
    ) -> None:  # fmt: skip
        """The outputs of a step that was formed with drafts were taken: these."""

    def dummy(self, began_ns: int, ended_ns: int) -> None:
        """A step of nothing was run, so that other ranks need not wait for this one."""

    def failed(self, error: Exception) -> None:
        """The adapter itself failed: no more is told, and the recording says why."""

    def close(self) -> None:
        """No more is told."""
