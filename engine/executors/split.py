"""Split execution: a mixed batch runs as a prefill segment and then a decode segment.

Kernels for prompts and kernels for single tokens are not the same, so a batch whose rows are laid
out `[prefill | decode]` is run in two parts, one after the other, and their outputs are
concatenated. Each part is given metadata as if it were a batch by itself, and that is where it goes
wrong: every per-token field has to be cut at the same token, and lengths have to start at 0 again.

Logits are computed for the last token of each prompt that ends in this step and for the tokens of
decodes, `[last token of each prefill | decode rows]`: one row for each sequence that samples, and
one more for each draft token that is to be checked. A prompt that does not end yet gives nothing.

Nothing is computed here. Whoever runs the batch, with costs or with a model, takes what `Split`
prepares, and so gets its faults as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from stepscope.engine.batch import PREFILL
from stepscope.engine.executors.staging import CopyQueue, Staged, Staging

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.ingest.recorder import Recorder

FIELDS = ("input_ids", "positions", "slot_mapping")


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a batch that runs by itself: `rows`, the first of them row `first_row`.

    `cu_lens` are cumulative lengths: row i has the tokens `cu_lens[i]` to `cu_lens[i + 1]` of the
    segment. `fields` says which of the batch's tokens the segment gets of each per-token field,
    None where it gets none.
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
class Prepared:
    """A batch that is ready to run: its segments, and what became of their metadata on the way.

    `path` is the code that runs: the kind of batch that it was taken for. `logits_tokens` are the
    tokens of the batch for which logits are computed, in order.
    """

    path: str
    segments: tuple[Segment, ...]
    staged: tuple[Staged, ...]
    logits_tokens: tuple[int, ...]


class Split:
    """Prepares one batch after the other; the metadata of mixed ones is staged through `queue`."""

    def __init__(
        self, faults: frozenset[str] = frozenset(), queue: CopyQueue | None = None
    ) -> None:
        self._faults = faults
        self._staging = Staging(faults, queue or CopyQueue())

    def prepare(
        self, batch: Batch, step: int, ts_ns: int, recorder: Recorder | None = None
    ) -> Prepared:
        """Split `batch`, and write segments and accesses to `recorder` as of `ts_ns`."""
        segments = split(batch, self._faults)
        if recorder:
            record(segments, step, ts_ns, recorder)
        staged = self._staging.stage(segments, step, ts_ns, recorder)
        path = segments[0].path if len(segments) == 1 else batch.kind
        return Prepared(path, segments, staged, logits_tokens(batch, self._faults))


def split(batch: Batch, faults: frozenset[str] = frozenset()) -> tuple[Segment, ...]:
    """Return the segments of `batch`: runs of rows of one phase, two where it is mixed."""
    parts = [(phase, tuple(rows)) for phase, rows in groupby(batch.rows, lambda row: row.phase)]
    if "mixed-taken-for-prefill" in faults and batch.num_prefill_reqs:
        # A mixed batch has prompts too: whoever asks for prompts first never asks for mixed.
        parts = [(PREFILL, tuple(batch.rows))]
    segments: list[Segment] = []
    first_row = first_token = 0
    for number, (phase, rows) in enumerate(parts):
        segments.append(_segment(number, phase, rows, first_row, first_token, batch, faults))
        first_row += len(rows)
        first_token += segments[-1].num_tokens
    return tuple(segments)


def _segment(
    number: int,
    phase: str,
    rows: tuple[Row, ...],
    first_row: int,
    first_token: int,
    batch: Batch,
    faults: frozenset[str],
) -> Segment:
    own = [0, *accumulate(row.num_tokens for row in rows)]
    tokens = range(first_token, first_token + own[-1])
    fields: dict[str, range | None] = dict.fromkeys(FIELDS, tokens)
    if number and "input-ids-not-sliced" in faults:
        fields["input_ids"] = range(batch.num_batched_tokens)
    if number and "slot-mapping-missing" in faults:
        fields["slot_mapping"] = None
    start = first_token if "lengths-not-rebased" in faults else 0
    cu_lens = tuple(start + length for length in own)
    return Segment(number, phase, phase, first_row, rows, cu_lens, fields)


def logits_tokens(batch: Batch, faults: frozenset[str] = frozenset()) -> tuple[int, ...]:
    """Return the tokens of `batch` that logits are computed for, counted over all its rows."""
    if batch.kind == "mixed" and "logits-per-token" in faults:
        return tuple(range(batch.num_batched_tokens))
    if batch.kind == "mixed" and "logits-per-batch" in faults:
        return (batch.num_batched_tokens - 1,)
    ends = accumulate(row.num_tokens for row in batch.rows)
    return tuple(
        token
        for row, end in zip(batch.rows, ends, strict=True)
        if row.samples
        for token in range(end - 1 - row.num_draft, end)
    )


def record(segments: Sequence[Segment], step: int, ts_ns: int, recorder: Recorder) -> None:
    """Write the `segments` of a step, as of `ts_ns`."""
    for each in segments:
        lengths = (None if tokens is None else len(tokens) for tokens in each.fields.values())
        recorder.segments(
            step, ts_ns, each.segment, each.phase, each.first_row, len(each.rows),
            each.num_tokens, each.cu_lens[0], each.cu_lens[-1], each.path, *lengths,
        )  # fmt: skip
