"""How a step's metadata gets to the device: pinned host memory, a queue of copies, a shared view.

The host writes a field (cumulative lengths, token ids, positions, KV slots, block tables, the plan
of a compressed history) to a pinned buffer and asks for a copy; the copy runs by itself, behind
those asked for earlier, while the host goes on. On the device a field has one buffer too. So a
mixed batch writes both buffers twice within a step, once for each segment, and needs two things:
the prefill segment takes a copy of its own on the device, and the host waits for that before it
writes the decode segment's fields. Each is a fault when it is left out:

- `decode-overwrites-shared-view`: no copy is taken. The prefill segment reads the shared buffer
  after the decode segment's fields have arrived there.
- `plans-not-cloned`: a copy is taken of all fields but the compress plan, which hangs from another
  one.
- `decode-region-stale`: whoever prepares the token ids returns when the prompts' are written. The
  decode segment reads what an earlier one left there. `lengths-stale` is the same of the cumulative
  lengths, which whoever prepares decodes takes for written already.
- `pinned-buffer-overwritten`: the host does not wait. With a short chunk the copies have drained by
  the time it writes again, and nothing happens; behind a long one the last field's copy has not
  begun, and takes what the host writes now.

Every access is recorded with the stream that issues it, and every event that orders two streams, so
that a race can be told without its having happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.engine.batch import Row
    from stepscope.ingest.recorder import Recorder

HOST, COPY, COMPUTE = "host", "copy", "compute"
ENTRY_BYTES = 8  # fields are 64-bit integers
LENGTHS, PLAN = "cu_seqlens_q", "compress_plan"
STALE_UNDER = {"decode-region-stale": "input_ids", "lengths-stale": LENGTHS}
"""Which field is not written for decodes behind prompts under which fault."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a batch that runs by itself: `rows`, the first of them row `first_row`.

    `cu_lens` are cumulative lengths: row i has the tokens `cu_lens[i]` to `cu_lens[i + 1]` of the
    segment. `fields` says which of the batch's tokens the segment gets of each per-token field,
    None where it gets none, and which of its own entries of each other field.
    """

    segment: int
    phase: str
    path: str
    first_row: int
    rows: tuple[Row, ...]
    cu_lens: tuple[int, ...]
    fields: Mapping[str, range | None]

    @property
    def num_tokens(self) -> int:
        """Tokens of its rows, whatever its metadata says."""
        return sum(row.num_tokens for row in self.rows)


@dataclass(frozen=True, slots=True)
class CopyQueue:
    """Copies from pinned memory, one after the other, `bytes_per_us` each.

    The default, 12 GB/s, is what a PCIe 3.0 x16 link carries; the host needs `turnaround_ns` from
    asking for one segment's copies to writing the next one's fields, 2.5 µs for half a dozen small
    arrays.
    """

    bytes_per_us: int = 12_000
    turnaround_ns: int = 2_500

    def overwritten(self, num_ahead: int, num_queued: int, num_written: int) -> range:
        """Return which entries of a field's copy are overwritten before they are read.

        The field has `num_queued` entries and those that go before it `num_ahead`; the host then
        writes the first `num_written`.
        """
        entries_per_ns = self.bytes_per_us / 1000 / ENTRY_BYTES
        num_drained = int(self.turnaround_ns * entries_per_ns) - num_ahead
        return range(min(max(0, num_drained), num_queued), min(num_queued, num_written))


Pieces = tuple[tuple[range, int], ...]
"""Which entries of a field hold the contents of which epoch."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What a segment's fields hold on the device.

    `overwritten` names, by field, the entries that the copy took from the next segment's, `stale`
    the fields that nobody wrote or copied for this segment, with what was there. Of those `cloned`
    the segment has copies of its own, of the others it reads the shared ones; for one that
    `is_waited_for` the host waits before it writes the next segment's.
    """

    overwritten: Mapping[str, range] = field(default_factory=dict)
    stale: Mapping[str, Pieces] = field(default_factory=dict)
    cloned: frozenset[str] = frozenset()
    is_waited_for: bool = False


class Staging:
    """Stages the segments of one step after the other; epochs count the segments of the run."""

    def __init__(self, faults: frozenset[str], queue: CopyQueue) -> None:
        self._takes_clone = "decode-overwrites-shared-view" not in faults
        self._clones_plans = "plans-not-cloned" not in faults
        self._waits = "pinned-buffer-overwritten" not in faults
        self._skipped = [STALE_UNDER[name] for name in sorted(faults & set(STALE_UNDER))]
        self._queue = queue
        self._epoch = 0
        self._shared: dict[str, Pieces] = dict.fromkeys(self._skipped, ())

    def stage(
        self, segments: Sequence[Segment], step: int, ts_ns: int, recorder: Recorder | None
    ) -> tuple[Staged, ...]:
        """Stage a step's segments; the accesses of a mixed one are recorded, as of `ts_ns`."""
        first_epoch = self._epoch + 1
        self._epoch += len(segments)
        stale = [
            self._stale(segment, segments[0], first_epoch + at)
            for at, segment in enumerate(segments)
        ]
        staged = [
            self._arrived(*pair, found)
            for pair, found in zip(_followed(segments), stale, strict=True)
        ]
        if recorder and len(segments) > 1:
            log = _Log(recorder, step, ts_ns)
            for at, segment in enumerate(segments):
                _stage(segment, staged[at], first_epoch + at, log)
            for at, segment in enumerate(segments):
                following = segments[at + 1 : at + 2]
                _run(segment, staged[at], first_epoch + at, following, log)
            _order(log, COMPUTE, HOST, "ran")
        return tuple(staged)

    def _arrived(
        self, segment: Segment, following: Segment | None, stale: Mapping[str, Pieces]
    ) -> Staged:
        if following is None:
            return Staged(stale=stale)
        cloned = frozenset(segment.fields) if self._takes_clone else frozenset()
        if not self._clones_plans:
            cloned = frozenset(name for name in cloned if not name.startswith(PLAN))
        if self._waits:
            return Staged(stale=stale, cloned=cloned, is_waited_for=True)
        return Staged(self._overwritten(segment, following), stale, cloned)

    def _overwritten(self, segment: Segment, following: Segment) -> dict[str, range]:
        overwritten: dict[str, range] = {}
        num_ahead = 0
        for name in segment.fields:
            num = _num(segment, name)
            if late := self._queue.overwritten(num_ahead, num, _num(following, name)):
                overwritten[name] = late
            num_ahead += num
        return overwritten

    def _stale(self, segment: Segment, first: Segment, epoch: int) -> dict[str, Pieces]:
        """Write what is skipped, but not of decodes behind prompts; say what these find."""
        if segment.phase != first.phase:
            return {
                name: _cut(shared, range(_num(segment, name)))
                for name, shared in self._shared.items()
            }
        for name, shared in self._shared.items():
            num = _num(segment, name)
            rest = _cut(shared, range(num, max(num, _end(shared))))
            self._shared[name] = ((range(num), epoch), *rest)
        return {}


def _cut(pieces: Pieces, entries: range) -> Pieces:
    cut = (
        (range(max(each.start, entries.start), min(each.stop, entries.stop)), epoch)
        for each, epoch in pieces
    )
    return tuple((each, epoch) for each, epoch in cut if each)


def _end(pieces: Pieces) -> int:
    return max((each.stop for each, _ in pieces), default=0)


class _Log:
    """Writes the accesses of a step, a nanosecond apart: their order is what matters."""

    def __init__(self, recorder: Recorder, step: int, ts_ns: int) -> None:
        self._record: Callable[..., None] = recorder.accesses
        self._step = step
        self._ts_ns = ts_ns
        self.segment: int | None = None

    def __call__(
        self,
        stream: str,
        op: str,
        buffer: str | None = None,
        tokens: range | None = None,
        epoch: int | None = None,
        event: str | None = None,
    ) -> None:
        first, last = (tokens.start, tokens.stop) if tokens is not None else (None, None)
        name = f"{event} {self._step}" if event else None
        self._record(
            self._step, self._ts_ns, buffer, first, last, op, stream, self.segment, epoch, name
        )
        self._ts_ns += 1


def _order(log: _Log, earlier: str, later: str, event: str) -> None:
    log(earlier, "record", event=event)
    log(later, "wait", event=event)


def _stage(segment: Segment, staged: Staged, epoch: int, log: _Log) -> None:
    log.segment = segment.segment
    names = [name for name in _given(segment) if name not in staged.stale]
    for name in names:
        log(HOST, "write", f"pinned {name}", range(_num(segment, name)), epoch)
    _order(log, HOST, COPY, f"written {segment.segment}")
    if segment.segment:
        log(COPY, "wait", event=f"taken {segment.segment - 1}")
    for name in names:
        for entries, held in _contents(segment, staged, name, epoch):
            log(COPY, "copy", f"pinned {name}", entries, held)
            log(COPY, "write", f"shared {name}", entries, held)
    _order(log, COPY, COMPUTE, f"staged {segment.segment}")
    for name in names:
        if name in staged.cloned:
            for entries, held in _contents(segment, staged, name, epoch):
                log(COMPUTE, "read", f"shared {name}", entries, held)
                log(COMPUTE, "write", f"cloned {name}", entries, held)
    log(COMPUTE, "record", event=f"taken {segment.segment}")
    if staged.is_waited_for:
        log(HOST, "wait", event=f"taken {segment.segment}")


def _run(
    segment: Segment, staged: Staged, epoch: int, following: Sequence[Segment], log: _Log
) -> None:
    log.segment = segment.segment
    for name in _given(segment):
        if name in staged.cloned or not following:
            found = _contents(segment, staged, name, epoch)
        else:
            num, num_over = _num(segment, name), _num(following[0], name)
            found = _pieces(num, range(min(num, num_over)), epoch)
        source = "cloned" if name in staged.cloned else "shared"
        for entries, held in found:
            log(COMPUTE, "read", f"{source} {name}", entries, held)


def _given(segment: Segment) -> list[str]:
    """Which fields the segment has anything of."""
    return [name for name in segment.fields if _num(segment, name)]


def _contents(segment: Segment, staged: Staged, name: str, epoch: int) -> Pieces:
    if name in staged.stale:
        return staged.stale[name]
    return _pieces(_num(segment, name), staged.overwritten.get(name, range(0)), epoch)


def _pieces(num: int, overwritten: range, epoch: int) -> Pieces:
    """Cut a field where another epoch begins: what is overwritten comes from the next segment."""
    pieces = (
        (range(overwritten.start), epoch),
        (overwritten, epoch + 1),
        (range(overwritten.stop, num), epoch),
    )
    return tuple((entries, held) for entries, held in pieces if entries)


def _num(segment: Segment, name: str) -> int:
    entries = segment.fields[name]
    return 0 if entries is None else len(entries)


def _followed(segments: Sequence[Segment]) -> list[tuple[Segment, Segment | None]]:
    return list(zip(segments, [*segments[1:], None], strict=True))
