"""Steps and counters out of forward passes, one behind the other or when their records came."""

from __future__ import annotations

from stepscope.ingest.derive.step_tags import kind_of
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.readers.encodings.published import Numbers, Published
from stepscope.ingest.readers.forward_pass.decode import (
    ForwardPass,
    forward_pass,
    is_of_known_version,
    is_record,
)
from stepscope.ingest.readers.text.collect import Line, LogRows, Source
from stepscope.ingest.readers.text.times import Stamp

NAME = "forward pass metrics"
PASSES, HEARTBEATS = "iterations", "heartbeats of an idle scheduler"
NO_RECORD, OTHER_VERSION = "records that are not forward passes", "records of another version"
MISSING = "iterations that are missing by their numbers"
AGAIN = "records whose numbers repeat or start over"
RECEIVED, POSITION = "received", "position"


class ForwardPasses:
    """Takes one record after the other."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.rows = LogRows(limits)
        self.workers: dict[str, str] = {}
        self._numbers: dict[str, Numbers] = {}

    @property
    def num_missing(self) -> int:
        """How many iterations were published and are not there."""
        return self.rows.skipped[MISSING]

    def take(self, record: Published) -> None:
        """Add a step, or count a record that is none."""
        if not is_record(record.payload):
            self.rows.skipped[NO_RECORD] += 1
        elif not is_of_known_version(record.payload):
            self.rows.skipped[OTHER_VERSION] += 1
        else:
            self._add(forward_pass(record.payload), record.received_ns)

    def _add(self, said: ForwardPass, received_ns: int | None) -> None:
        source = self.rows.source(NAME, Line("", origin=said.worker), str(said.rank), said.rank)
        self._count(source, said.number)
        stamp = self._stamp(source, received_ns)
        if said.is_heartbeat:
            self.rows.read[HEARTBEATS] += 1
            begins_ns = stamp.ns
        else:
            self.rows.read[PASSES] += 1
            begins_ns = self._step(said, source, stamp)
        self.rows.counters(source, begins_ns, said.numbers)

    def _count(self, source: Source, number: int | None) -> None:
        missing, is_again = self._numbers.setdefault(source.name, Numbers()).take(number)
        self.rows.skipped[MISSING] += missing
        self.rows.repaired[AGAIN] += is_again

    def _stamp(self, source: Source, received_ns: int | None) -> Stamp:
        """When a record came; else where the iteration before it ended."""
        source.stamps[POSITION if received_ns is None else RECEIVED] += 1
        if received_ns is not None:
            return Stamp(received_ns, 1)
        return Stamp(max(source.ends_ns, 0), 1, is_placed=True)

    def _step(self, said: ForwardPass, source: Source, stamp: Stamp) -> int:
        is_known = said.num_prefills is not None and said.num_decodes is not None
        _, begins_ns = self.rows.step(
            source,
            Line(""),
            inferred=NAME,
            number=said.number,
            dur_ns=said.dur_ns,
            is_end=True,
            at=stamp,
            kind=kind_of(said.num_prefills or 0, said.num_decodes or 0) if is_known else None,
            num_prefill_reqs=said.num_prefills,
            num_decode_reqs=said.num_decodes,
            num_prefill_tokens=said.num_prefill_tokens,
            num_waiting=said.num_queued,
            tag=None,
        )
        return begins_ns
