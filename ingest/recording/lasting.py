"""Batches that go on: one small row a step while nobody joins or leaves.

A step's batch is a row `(step, ts_ns, counter, batch, num_rows)`. `counter` counts steps, and
`batch` is the id of a change, in the file of the strings: who left and which rows were told since
the change before it. What grows with every step is kept less the counter, so that a step in which
nothing changes writes no more than its row. Outputs are a row of the same form, which says for
which of the batch's rows there was none. From a change told whole, one in `MOST_CHANGES`, all can
be read that follows.

    u32 id of the change before (0: told whole), u32 requests that left, u32 rows told, i64 counter
    u32 for each that left: its place in the batch before
    the rows told, each `TOLD`: its place among those who stayed, or behind them, and its columns
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import starmap
from typing import Any, NamedTuple

from stepscope.ingest.columns import Column, Table, Type
from stepscope.ingest.recording.forms.rows import NULLS
from stepscope.ingest.recording.forms.texts import write_left
from stepscope.ingest.recording.journal import Journal
from stepscope.ingest.recording.row_streams import Rows
from stepscope.ingest.recording.segments import LASTING
from stepscope.ingest.schema import SEQ, STEP

MOST_CHANGES = 64
"""So many changes follow from one that is told whole, at most."""
NONE_BEFORE = "there is no batch to go on from"
HEAD = struct.Struct("<IIIq")
TOLD = struct.Struct("<IIIqqqqqiiibb")
NULL64, NULL32, NULL8 = NULLS[Type.I64], NULLS[Type.I32], NULLS[Type.BOOL]
_new = tuple.__new__
"""Makes a named tuple without the function of Python's that its class has for that."""


def _number(name: str) -> Column:
    return Column(name, Type.I64, "")


BATCHES = Table(
    "batch_rows", "a step's batch",
    (STEP, *map(_number, ("ts_ns", "counter", "batch", "num_rows")), SEQ),
    ("step", "ts_ns", "counter", "batch", "num_rows"),
)  # fmt: skip
OUTPUTS = Table(
    "outputs", "the outputs of a step's batch",
    (STEP, *map(_number, ("ts_ns", "counter", "batch", "without", "num_rows"))),
    ("step", "ts_ns", "counter", "batch", "without", "num_rows"),
)  # fmt: skip
LASTING_TABLES = {table.name: table for table in (BATCHES, OUTPUTS)}


class BatchRow(NamedTuple):
    """A row of a batch, told whole; the columns are those of `batch_rows`.

    `position` is that of the one output that it gives, from 0; None where it gives none, as a chunk
    that does not end the prefill. `prompt_len` and `slot` hold while the request stays.
    """

    request: str
    phase: str
    num_tokens: int
    num_computed: int | None = None
    position: int | None = None
    prompt_len: int | None = None
    num_cached: int | None = None
    slot: int | None = None
    num_draft: int | None = None
    num_accepted: int | None = None
    is_final_chunk: bool | None = None
    is_recompute: bool | None = None


class Formed(NamedTuple):
    """A batch that was recorded, for its outputs."""

    step: int
    counter: int
    batch: int
    requests: list[str]


class _Kept(NamedTuple):
    """What is known of a request in the batch: what grows is less the counter."""

    request: int
    num_computed: int
    position: int
    prompt_len: int
    slot: int


_UNKNOWN = _Kept(0, *map(int, (NULL64, NULL64, NULL64, NULL32)))
"""Of a request that is new in the batch."""


class Lasting:
    """The batches of one scheduler, told by what changes; for the one thread that schedules.

    Nothing raises. A batch that cannot be recorded is counted, and so are those that go on from it,
    until one is told `whole`.

    `requests` are those of the last batch, `batch` is the change that left them so, 0 for none, and
    `counter` counts batches: with `record_batch` and `record_outputs` a loop that cannot afford a
    call can do what `again` and `outputs` do.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.record_batch = Rows(journal, BATCHES, BATCHES.given, form=LASTING).record
        self.record_outputs = Rows(journal, OUTPUTS, OUTPUTS.given, form=LASTING).record
        self.requests: list[str] = []
        self._kept: list[_Kept] = []
        self.counter, self.batch, self._num_changes = 0, 0, 0

    @property
    def num_rows(self) -> int:
        """Rows of the last batch."""
        return len(self.requests)

    def again(self, step: int, ts_ns: int) -> Formed | None:
        """Record the batch of the step before again: each request decodes one token more."""
        if not self.batch:
            self._drop("batch_rows", len(self.requests), LookupError(NONE_BEFORE))
            return None
        self.counter = counter = self.counter + 1
        requests, batch = self.requests, self.batch
        self.record_batch(step, ts_ns, counter, batch, len(requests))
        return _new(Formed, (step, counter, batch, requests))

    def formed(
        self, step: int, ts_ns: int, left: Iterable[str] = (), rows: Iterable[BatchRow] = ()
    ) -> Formed | None:
        """Record the batch of the step before without those who `left`, and with `rows` told whole.

        A row takes the place of its request, or the last one where that is new.
        """
        if not self.batch:
            num_rows = _num_meant(self.requests, left, rows)
            self._drop("batch_rows", num_rows, LookupError(NONE_BEFORE))
            return None
        return self._told(step, ts_ns, left, rows)

    def without(
        self, step: int, ts_ns: int, places: Sequence[int], requests: list[str]
    ) -> Formed | None:
        """Record the batch of the step before without the rows at these places, lowest first.

        `requests` are those who are left, in their order: the list is kept. It is what `formed`
        does where some left and no more, which an engine does most.
        """
        before, kept, strings = self.batch, self._kept, self._journal.strings
        if not before:
            self._drop("batch_rows", len(requests), LookupError(NONE_BEFORE))
            return None
        self.counter = counter = self.counter + 1
        try:
            for place in reversed(places):
                del kept[place]
            batch = None
            if self._num_changes < MOST_CHANGES - 1:
                batch = write_left(strings.place, before, counter, places)
            if batch is None:
                with self._journal.lock:
                    batch = self._changed([*places], [], kept, counter)
            else:
                self._num_changes += 1
            self.batch = batch
            self.record_batch(step, ts_ns, counter, batch, len(requests))
        except Exception as error:
            self.batch = 0
            self._drop("batch_rows", len(requests), error)
            return None
        self.requests = requests
        return _new(Formed, (step, counter, batch, requests))

    def whole(self, step: int, ts_ns: int, rows: Iterable[BatchRow]) -> Formed | None:
        """Record a batch of exactly these rows, in this order."""
        self.requests, self._kept, self.batch = [], [], 0
        return self._told(step, ts_ns, (), rows)

    def outputs(self, formed: Formed | None, ts_ns: int, without: Iterable[str] = ()) -> None:
        """Record that each row of a batch gave its output, but for these requests'."""
        if formed is None:
            return  # the batch was dropped, and counted
        step, counter, batch, requests = formed
        places = 0
        if without:
            try:
                with self._journal.lock:
                    places = self._absent(_places(requests, without))
            except Exception as error:
                self._drop("outputs", len(requests), error)
                return
        self.record_outputs(step, ts_ns, counter, batch, places, len(requests))

    def _absent(self, places: list[int]) -> int:
        """Write the places of rows that gave no output; 0 where there are none."""
        raw = array("I", places).tobytes()
        return self._journal.strings.written(raw) if raw else 0

    def _told(
        self, step: int, ts_ns: int, left: Iterable[str], rows: Iterable[BatchRow]
    ) -> Formed | None:
        requests, kept = [*self.requests], [*self._kept]
        counter = self.counter + 1
        try:
            left, rows = [*left], [*rows]
            with self._journal.lock:
                gone = sorted({requests.index(name) for name in left if name in requests})
                for place in reversed(gone):
                    del requests[place], kept[place]
                told = self._told_rows(rows, requests, kept, counter) if rows else []
                batch = self._changed(gone, told, kept, counter)
                self.record_batch(step, ts_ns, counter, batch, len(requests))
        except Exception as error:
            self.batch = 0
            self._drop("batch_rows", _num_meant(self.requests, left, rows), error)
            return None
        self.requests, self._kept, self.counter, self.batch = requests, kept, counter, batch
        return _new(Formed, (step, counter, batch, requests))

    def _told_rows(
        self, rows: Iterable[Sequence[Any]], requests: list[str], kept: list[_Kept], counter: int
    ) -> list[tuple[Any, ...]]:
        """What is written of rows; `requests` and `kept` become what they are with these."""
        ids, id_of = self._journal.strings.ids, self._journal.strings.id_of
        places = dict(zip(requests, range(len(requests)), strict=True))
        told = []
        for row in rows:
            whole = row if isinstance(row, BatchRow) else BatchRow(*row)
            (name, phase, num_tokens, num_computed, given, prompt, cached, slot, draft, accepted,
             is_final, is_recompute) = whole  # fmt: skip
            place = places.setdefault(name, len(requests))
            if place == len(requests):
                requests.append(name)
                kept.append(_UNKNOWN)
            number, last = ids.get(name) or id_of(name), kept[place]
            computed = NULL64 if num_computed is None else num_computed
            position = NULL64 if given is None else given
            prompt = last.prompt_len if prompt is None else prompt
            slot = last.slot if slot is None else slot
            kept[place] = _new(_Kept, (
                number, computed if computed == NULL64 else computed + num_tokens - counter - 1,
                position if position == NULL64 else position - counter, prompt, slot,
            ))  # fmt: skip
            told.append((
                place, number, ids.get(phase) or id_of(phase), num_tokens, computed, position,
                prompt, NULL64 if cached is None else cached, slot,
                NULL32 if draft is None else draft, NULL32 if accepted is None else accepted,
                NULL8 if is_final is None else is_final,
                NULL8 if is_recompute is None else is_recompute,
            ))  # fmt: skip
        return told

    def _changed(
        self, gone: list[int], told: list[tuple[Any, ...]], kept: list[_Kept], counter: int
    ) -> int:
        """Write a change, or all rows where enough changes have followed each other."""
        before = self.batch
        self._num_changes += 1
        if not before or self._num_changes >= MOST_CHANGES:
            before, self._num_changes = 0, 0
            own = {row[0]: row for row in told}
            decode = self._journal.strings.id_of("decode")
            gone = []
            told = [
                own.get(place) or _going_on(place, each, decode, counter)
                for place, each in enumerate(kept)
            ]
        head = HEAD.pack(before, len(gone), len(told), counter)
        rows = b"".join(starmap(TOLD.pack, told))
        return self._journal.strings.written(head + array("I", gone).tobytes() + rows)

    def _drop(self, table: str, num_rows: int, error: Exception) -> None:
        with self._journal.lock:
            self._journal.drop(table, num_rows, error)


def _num_meant(requests: list[str], left: Iterable[str], rows: Iterable[Sequence[Any]]) -> int:
    """How many rows a batch would have had, as far as its requests have names."""
    meant = set(requests)
    with suppress(Exception):
        meant.difference_update(left)
        meant.update(row[0] for row in rows)
    return len(meant)


def _places(requests: list[str], some: Iterable[str]) -> list[int]:
    """Where those of `some` stand that are among the requests, in order."""
    return sorted({requests.index(request) for request in some if request in requests})


def _going_on(place: int, kept: _Kept, decode: int, counter: int) -> tuple[Any, ...]:
    """The row of a request that decodes one token more."""
    computed, position = kept.num_computed, kept.position
    return (
        place, kept.request, decode, 1,
        computed if computed == NULL64 else computed + counter,
        position if position == NULL64 else position + counter,
        kept.prompt_len, NULL64, kept.slot, NULL32, NULL32, NULL8, NULL8,
    )  # fmt: skip
