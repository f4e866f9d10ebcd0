"""A rank's experts, and the three ways to run them; an all-reduce adds up what the ranks made.

Each expert belongs to one rank. A prompt takes the grouped GEMM: its many tokens are sorted by
expert, each expert runs once over its own, and the results are put back in order. For the few rows
of a decode that is a trap, since an expert then gets a row or none and the sorting is for nothing:
two or three rows go through each expert together, and more are done one after the other.

Rows that are fused meet in one all-reduce of a layer. On the other paths a decode has one for each
row, the grouped GEMM's among them: its rows are added up as the loop over rows before it did.

What the experts read lies in a scratch buffer, a row for each row of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.engine.model.numpy_decoder import Array
from stepscope.engine.parallel.costs import FUSED, PER_TOKEN
from stepscope.engine.parallel.links.link import Link
from stepscope.engine.parallel.shares.access_log import COMPUTE, AccessLog

SCRATCH = "moe-scratch"
RunPath = Callable[[str, int, Array], Array]  # path, layer, rows: this rank's part of them


@dataclass(frozen=True, slots=True)
class Pass:
    """How the experts of a forward pass are run: path and nanoseconds of each layer.

    `segments` are the rows of the batch that its tokens belong to, None where they are all of one
    sequence.
    """

    paths: Sequence[str]
    layers_ns: Sequence[int]
    segments: Sequence[int] | None = None
    is_prefill: bool = False


class ShardedExperts:
    """Runs this rank's experts with `run_path`, and adds up the ranks' parts.

    `spend` lets the time of a layer pass.
    """

    def __init__(
        self,
        run_path: RunPath,
        link: Link,
        log: AccessLog,
        spend: Callable[[int], object],
        *,
        shares_scratch: bool = False,
    ) -> None:
        self.now = Pass((), ())
        self._run_path = run_path
        self._link = link
        self._log = log
        self._spend = spend
        self._shares_scratch = shares_scratch

    def run(self, layer: int, hidden: Array) -> Array:
        """Return what all ranks' experts make of `hidden`, [tokens, hidden_size]."""
        segments, path = self.now.segments, self.now.paths[layer]
        given = hidden if segments is None else self._through_scratch(hidden, segments)
        self._spend(self.now.layers_ns[layer])
        if path == PER_TOKEN:
            made = [self._run_path(path, layer, row[None])[0] for row in given]
        elif path == FUSED or self.now.is_prefill:
            return self._link.all_reduce(self._run_path(path, layer, given))
        else:
            made = [*self._run_path(path, layer, given)]
        return np.stack([self._link.all_reduce(row) for row in made])

    def _through_scratch(self, hidden: Array, segments: Sequence[int]) -> Array:
        rows = [0 if self._shares_scratch else row for row in range(len(hidden))]
        scratch, epochs = np.empty_like(hidden), [0] * len(hidden)
        for row, segment, values in zip(rows, segments, hidden, strict=True):
            scratch[row] = values
            epochs[row] = self._log.next_epoch()
            self._log.access(COMPUTE, "write", SCRATCH, row, segment, epochs[row])
        for row, segment in zip(rows, segments, strict=True):
            self._log.access(COMPUTE, "read", SCRATCH, row, segment, epochs[row])
        out: Array = scratch[rows]
        return out
