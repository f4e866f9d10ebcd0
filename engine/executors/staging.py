"""How a step's metadata gets to the device: pinned host memory, a queue of copies, a shared view.

The host writes a per-token field to a pinned buffer and asks for a copy; the copy runs by itself,
behind those asked for earlier, while the host goes on. On the device a field has one buffer too. So
a mixed batch writes both buffers twice within a step, once for each segment, and needs two things:
the prefill segment takes a copy of its own on the device, and the host waits for that before it
writes the decode segment's fields. Each is a fault when it is left out:

- `decode-overwrites-shared-view`: no copy is taken. The prefill segment reads the shared buffer
  after the decode segment's fields have arrived there.
- `pinned-buffer-overwritten`: the host does not wait. With a short chunk the copies have drained by
  the time it writes again, and nothing happens; behind a long one the last field's copy has not
  begun, and takes what the host writes now.

Every access is recorded with the stream that issues it, and every event that orders two streams, so
that a race can be told without its having happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.engine.executors.split import Segment
    from stepscope.ingest.recorder import Recorder

HOST, COPY, COMPUTE = "host", "copy", "compute"
TOKEN_BYTES = 8  # fields are 64-bit integers


@dataclass(frozen=True, slots=True)
class CopyQueue:
    """Copies from pinned memory, one after the other, `bytes_per_us` each.

    The default, 12 GB/s, is what a PCIe 3.0 x16 link carries; the host needs `turnaround_ns` from
    asking for one segment's copies to writing the next one's fields, 2 us for a few small arrays.
    """

    bytes_per_us: int = 12_000
    turnaround_ns: int = 2_000

    def overwritten(self, place: int, num_queued: int, num_written: int) -> range:
        """Return which tokens of a field's copy are overwritten before they are read.

        Each field of the copied segment has `num_queued` tokens, `place` of the fields go before
        this one; the host then writes the first `num_written`.
        """
        tokens_per_ns = self.bytes_per_us / 1000 / TOKEN_BYTES
        num_drained = int(self.turnaround_ns * tokens_per_ns) - place * num_queued
        return range(min(max(0, num_drained), num_queued), min(num_queued, num_written))


@dataclass(frozen=True, slots=True)
class Staged:
    """What a segment's fields hold on the device.

    `overwritten` names, by field, the tokens that the copy took from the next segment's; a segment
    that `is_cloned` has fields of its own, another one reads the shared ones; for one that
    `is_waited_for` the host waits before it writes the next segment's.
    """

    overwritten: dict[str, range] = field(default_factory=dict)
    is_cloned: bool = False
    is_waited_for: bool = False


class Staging:
    """Stages the segments of one step after the other; epochs count the segments of the run."""

    def __init__(self, faults: frozenset[str], queue: CopyQueue) -> None:
        self._takes_clone = "decode-overwrites-shared-view" not in faults
        self._waits = "pinned-buffer-overwritten" not in faults
        self._queue = queue
        self._epoch = 0

    def stage(
        self, segments: Sequence[Segment], step: int, ts_ns: int, recorder: Recorder | None
    ) -> tuple[Staged, ...]:
        """Stage a step's segments; the accesses of a mixed one are recorded, as of `ts_ns`."""
        staged = [self._arrived(one, other) for one, other in _followed(segments)]
        first_epoch = self._epoch + 1
        self._epoch += len(segments)
        if recorder and len(segments) > 1:
            log = _Log(recorder, step, ts_ns)
            for at, segment in enumerate(segments):
                _stage(segment, staged[at], first_epoch + at, log, waits=self._waits)
            for at, segment in enumerate(segments):
                following = segments[at + 1 : at + 2]
                _run(segment, staged[at], first_epoch + at, following, log)
            _order(log, COMPUTE, HOST, "ran")
        return tuple(staged)

    def _arrived(self, segment: Segment, following: Segment | None) -> Staged:
        if following is None:
            return Staged()
        if self._waits:
            return Staged(is_cloned=self._takes_clone, is_waited_for=True)
        overwritten = {
            name: tokens
            for place, name in enumerate(segment.fields)
            if (
                tokens := self._queue.overwritten(place, _num(segment, name), _num(following, name))
            )
        }
        return Staged(overwritten, self._takes_clone)


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


def _stage(segment: Segment, staged: Staged, epoch: int, log: _Log, *, waits: bool) -> None:
    log.segment = segment.segment
    names = [name for name, tokens in segment.fields.items() if tokens is not None]
    for name in names:
        log(HOST, "write", f"pinned {name}", range(_num(segment, name)), epoch)
    _order(log, HOST, COPY, f"written {segment.segment}")
    if segment.segment:
        log(COPY, "wait", event=f"taken {segment.segment - 1}")
    for name in names:
        for tokens, held in _contents(segment, staged, name, epoch):
            log(COPY, "copy", f"pinned {name}", tokens, held)
            log(COPY, "write", f"shared {name}", tokens, held)
    _order(log, COPY, COMPUTE, f"staged {segment.segment}")
    if staged.is_cloned:
        for name in names:
            for tokens, held in _contents(segment, staged, name, epoch):
                log(COMPUTE, "read", f"shared {name}", tokens, held)
                log(COMPUTE, "write", f"cloned {name}", tokens, held)
    log(COMPUTE, "record", event=f"taken {segment.segment}")
    if waits:
        log(HOST, "wait", event=f"taken {segment.segment}")


def _run(
    segment: Segment, staged: Staged, epoch: int, following: Sequence[Segment], log: _Log
) -> None:
    log.segment = segment.segment
    for name, given in segment.fields.items():
        if given is None:
            continue
        if staged.is_cloned or not following:
            for tokens, held in _contents(segment, staged, name, epoch):
                log(COMPUTE, "read", _source(staged, name), tokens, held)
        else:
            num, num_over = _num(segment, name), _num(following[0], name)
            for tokens, held in _pieces(num, range(min(num, num_over)), epoch):
                log(COMPUTE, "read", _source(staged, name), tokens, held)


def _source(staged: Staged, name: str) -> str:
    return f"cloned {name}" if staged.is_cloned else f"shared {name}"


def _contents(segment: Segment, staged: Staged, name: str, epoch: int) -> list[tuple[range, int]]:
    return _pieces(_num(segment, name), staged.overwritten.get(name, range(0)), epoch)


def _pieces(num: int, overwritten: range, epoch: int) -> list[tuple[range, int]]:
    """Cut a field where another epoch begins: what is overwritten comes from the next segment."""
    pieces = [
        (range(overwritten.start), epoch),
        (overwritten, epoch + 1),
        (range(overwritten.stop, num), epoch),
    ]
    return [(tokens, held) for tokens, held in pieces if tokens]


def _num(segment: Segment, name: str) -> int:
    tokens = segment.fields[name]
    return 0 if tokens is None else len(tokens)


def _followed(segments: Sequence[Segment]) -> list[tuple[Segment, Segment | None]]:
    return list(zip(segments, [*segments[1:], None], strict=True))
