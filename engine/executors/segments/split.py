"""Split execution: a mixed batch runs as a prefill segment and then a decode segment.

Kernels for prompts and kernels for single tokens are not the same, so a batch whose rows are laid
out `[prefill | decode]` is run in two parts, one after the other, and their outputs are
concatenated. Each part is given metadata as if it were a batch by itself, and that is where it goes
wrong: every per-token field has to be cut at the same token, and lengths have to start at 0 again.

What takes a mixed batch apart is the attention backend, and not every one does: one that does not
raises when the first mixed batch comes. With two-batch overlap a batch of one phase runs as two
halves, of which one computes while the other exchanges; the halves are cut as if all rows were
alike, which those of a mixed batch are not, so a mixed batch is never halved.

Logits are computed for the last token of each prompt that ends in this step and for the tokens of
decodes, `[last token of each prefill | decode rows]`: one row for each sequence that samples, and
one more for each draft token that is to be checked. A prompt that does not end yet gives nothing.

Nothing is computed here. Whoever runs the batch, with costs or with a model, takes what `Split`
prepares, and so gets its faults as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from stepscope.engine.batch import PREFILL
from stepscope.engine.executors import ExecutionFailed
from stepscope.engine.executors.segments.staging import (
    LENGTHS,
    PLAN,
    CopyQueue,
    Segment,
    Staged,
    Staging,
)

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.ingest.recorder import Recorder

TOKEN_FIELDS = ("input_ids", "positions", "slot_mapping")
TBO = "+tbo"
BACKENDS = {"v4": 2, "mla": 1, "mha": None}
"""How often each layer's projections run for a mixed batch; None: the backend takes none."""
_Part = tuple[str, "tuple[Row, ...]", list[int]]
"""A phase, its rows, and how many tokens each of them is taken to have."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch that is ready to run: its segments, and what became of their metadata on the way.

    `path` is the code that runs: the kind of batch that it was taken for. `logits_tokens` are the
    tokens of the batch for which logits are computed, in order, and `sampling` the rows that these
    are for. The layers run `num_bodies` times, and the host waits `num_syncs` times for the device.
    """

    path: str
    segments: tuple[Segment, ...]
    staged: tuple[Staged, ...]
    logits_tokens: tuple[int, ...]
    sampling: tuple[Row, ...]
    num_bodies: int = 1

    @property
    def is_halved(self) -> bool:
        """Whether two-batch overlap runs it."""
        return self.path.endswith(TBO)

    @property
    def num_syncs(self) -> int:
        """How often the host waits for the device before it goes on."""
        return sum(each.is_waited_for for each in self.staged)


class Split:
    """Prepares one batch after the other; the metadata of mixed ones is staged through `queue`.

    `backend` is one of BACKENDS. With `overlaps` batches of one phase are halved. For each of the
    `ratios` of compressed histories there is a plan of the blocks of so many tokens that rows see.
    """

    def __init__(
        self,
        faults: frozenset[str] = frozenset(),
        queue: CopyQueue | None = None,
        backend: str = "v4",
        *,
        overlaps: bool = False,
        ratios: Sequence[int] = (),
    ) -> None:
        self._faults = faults
        self._staging = Staging(faults, queue or CopyQueue())
        self._backend = backend
        self._overlaps = overlaps
        self._ratios = ratios

    def prepare(
        self, batch: Batch, step: int, ts_ns: int, recorder: Recorder | None = None
    ) -> Prepared:
        """Split `batch`, and write segments and accesses to `recorder` as of `ts_ns`.

        ExecutionFailed where the batch is mixed and the backend takes none.
        """
        is_mixed = batch.kind == "mixed"
        num_bodies = BACKENDS[self._backend] if is_mixed else 1
        if num_bodies is None:
            raise ExecutionFailed(
                f"the {self._backend} backend takes no mixed batches",
                where=f"step {step}, {batch.num_prefill_reqs} prefill + "
                f"{batch.num_decode_reqs} decode",
                todo="switch mixed batches off, or choose another backend",
            )
        is_halved = self._is_halved(batch)
        segments = split(batch, self._faults, is_halved=is_halved, ratios=self._ratios)
        if recorder:
            record(segments, step, ts_ns, recorder)
        staged = self._staging.stage(segments, step, ts_ns, recorder)
        path = f"{batch.kind}{TBO}" if is_halved else _path(batch, segments)
        sampled = _sampled(batch, self._faults)
        sampling = tuple([row for row, _ in sampled])
        asked = _asked(batch, sampled, self._faults)
        return Prepared(path, segments, staged, asked, sampling, min(num_bodies, len(segments)))

    def _is_halved(self, batch: Batch) -> bool:
        """Whether two-batch overlap takes the batch: a mixed one's rows are not all alike."""
        is_uniform = batch.kind != "mixed" or "tbo-with-mixed" in self._faults
        return self._overlaps and is_uniform and len(batch.rows) > 1


def split(
    batch: Batch,
    faults: frozenset[str] = frozenset(),
    *,
    is_halved: bool = False,
    ratios: Sequence[int] = (),
) -> tuple[Segment, ...]:
    """Return the segments of `batch`: runs of rows of one phase, two where it is mixed or halved.

    Each has for each of the `ratios` a compress plan, with an entry for each block that rows see.
    """
    parts = _halves(batch) if is_halved else _by_phase(batch, faults)
    segments: list[Segment] = []
    first_row = first_token = 0
    for phase, rows, lengths in parts:
        start = first_token if "lengths-not-rebased" in faults else 0
        cu_lens = tuple(accumulate(lengths, initial=start))
        tokens = range(first_token, first_token + sum(lengths))
        fields = _fields(rows, tokens, ratios)
        if segments:
            fields |= _wrong_fields(batch, faults)
        elif len(parts) > 1 and "lengths-missing" in faults:
            fields[LENGTHS] = None
        segments.append(Segment(len(segments), phase, phase, first_row, rows, cu_lens, fields))
        first_row += len(rows)
        first_token = tokens.stop
    return tuple(segments)


def _by_phase(batch: Batch, faults: frozenset[str]) -> list[_Part]:
    if "mixed-taken-for-prefill" in faults and batch.num_prefill_reqs:
        # A mixed batch has prompts too: whoever asks for prompts first never asks for mixed.
        return [_part(PREFILL, batch.rows)]
    runs = groupby(batch.rows, lambda row: row.phase)
    return [_part(phase, tuple(rows)) for phase, rows in runs]


def _halves(batch: Batch) -> list[_Part]:
    """Cut the rows in two; those of a mixed batch as if all were prompts of one length."""
    middle = len(batch.rows) // 2
    rows = tuple(batch.rows[:middle]), tuple(batch.rows[middle:])
    if batch.kind != "mixed":
        return [_part(half[0].phase, half) for half in rows]
    each, rest = divmod(batch.num_batched_tokens, len(batch.rows))
    alike = [(PREFILL, half, [each] * len(half)) for half in rows]
    alike[1][2][-1] += rest
    return alike


def _part(phase: str, rows: Sequence[Row]) -> _Part:
    return phase, tuple(rows), [row.num_tokens for row in rows]


def plan_of(ratio: int) -> str:
    """The name of the field that holds the plan of blocks of `ratio` tokens."""
    return f"{PLAN}_{ratio}"


def _fields(rows: Sequence[Row], tokens: range, ratios: Sequence[int]) -> dict[str, range | None]:
    num_blocks = max([len(row.request.block_table) for row in rows], default=0)
    return {
        LENGTHS: range(len(rows) + 1),
        **dict.fromkeys(TOKEN_FIELDS, tokens),
        "block_tables": range(len(rows) * num_blocks),
        **{
            plan_of(ratio): range(sum(row.num_kv_tokens // ratio for row in rows))
            for ratio in ratios
        },
    }


def _wrong_fields(batch: Batch, faults: frozenset[str]) -> dict[str, range | None]:
    """What a segment behind another one gets in place of what it needs."""
    wrong: dict[str, range | None] = {}
    if "input-ids-not-sliced" in faults:
        wrong["input_ids"] = range(batch.num_batched_tokens)
    if "slot-mapping-missing" in faults:
        wrong["slot_mapping"] = None
    return wrong


def _path(batch: Batch, segments: Sequence[Segment]) -> str:
    return segments[0].path if len(segments) == 1 else batch.kind


def _sampled(batch: Batch, faults: frozenset[str]) -> list[tuple[Row, int]]:
    """The rows of `batch` that logits are computed for, and where the tokens of each end.

    A mixed batch that is taken for a prefill has those of its prompts alone: what gathers the last
    token of each row takes the prompts' lengths, and no decode is among them.
    """
    loses_decodes = batch.kind == "mixed" and "mixed-taken-for-prefill" in faults
    ends = accumulate([row.num_tokens for row in batch.rows])
    return [
        (row, end) for row, end in zip(batch.rows, ends, strict=True)
        if row.samples and not (loses_decodes and row.phase is not PREFILL)
    ]  # fmt: skip


def _asked(
    batch: Batch, sampled: Sequence[tuple[Row, int]], faults: frozenset[str]
) -> tuple[int, ...]:
    """The tokens of `batch` that logits are computed for, counted over all its rows."""
    if batch.kind == "mixed" and "logits-per-token" in faults:
        return tuple(range(batch.num_batched_tokens))
    if batch.kind == "mixed" and "logits-per-batch" in faults:
        return (batch.num_batched_tokens - 1,)
    tokens: list[int] = []
    for row, end in sampled:
        tokens.extend(range(end - 1 - row.num_draft, end))
    return tuple(tokens)


def record(segments: Sequence[Segment], step: int, ts_ns: int, recorder: Recorder) -> None:
    """Write the `segments` of a step, as of `ts_ns`."""
    for each in segments:
        has_lengths = each.fields[LENGTHS] is not None
        ends = (each.cu_lens[0], each.cu_lens[-1]) if has_lengths else (None, None)
        given = (each.fields[name] for name in TOKEN_FIELDS)
        lengths = (None if tokens is None else len(tokens) for tokens in given)
        recorder.segments(
            step, ts_ns, each.segment, each.phase, each.first_row, len(each.rows),
            each.num_tokens, *ends, each.path, *lengths,
        )  # fmt: skip
