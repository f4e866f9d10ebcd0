"""Batches that mostly are the batch of the step before, each request one token on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from stepscope.ingest.attach.telling import BatchRow
from stepscope.ingest.recorder import Recorder


class Batch(NamedTuple):
    """A batch that was told: the step, and its rows in order."""

    step: int
    rows: list[BatchRow]


class Batches:
    """Tells batches row by row."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rows: list[BatchRow] = []

    def again(self, step: int, ts_ns: int) -> Batch:
        """Tell the batch of the step before, each request one decoded token on."""
        return self.whole(step, ts_ns, [_one_on(row) for row in self._rows])

    def formed(self, step: int, ts_ns: int, left: Iterable[str], rows: Sequence[BatchRow]) -> Batch:
        """Tell the batch of the step before without `left`, with `rows` told whole."""
        gone, told = set(left), {row.request: row for row in rows}
        stay = {row.request: _one_on(row) for row in self._rows if row.request not in gone}
        return self.whole(step, ts_ns, list((stay | told).values()))

    def whole(self, step: int, ts_ns: int, rows: Sequence[BatchRow]) -> Batch:
        """Tell a batch of exactly these rows."""
        self._rows = list(rows)
        for number, row in enumerate(self._rows):
            told = row._asdict()
            del told["position"]
            self._recorder.batch_rows(step=step, ts_ns=ts_ns, row=number, **told)
        return Batch(step, self._rows)

    def outputs(self, batch: Batch, ts_ns: int, without: Collection[str] = ()) -> None:
        """Tell an output of every row that has a position, but of `without`."""
        for row in batch.rows:
            if row.position is not None and row.request not in without:
                self._recorder.outputs(
                    step=batch.step, ts_ns=ts_ns, request=row.request, position=row.position,
                    source_step=batch.step,
                )  # fmt: skip


def _one_on(row: BatchRow) -> BatchRow:
    position = 0 if row.position is None else row.position + 1
    computed = row.num_computed + row.num_tokens
    return BatchRow(row.request, "decode", 1, computed, position, row.prompt_len, slot=row.slot)
