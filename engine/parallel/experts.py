"""A rank's experts, and the three ways to run them; an all-reduce adds up what the ranks made.

Each expert belongs to one rank. A prompt takes the grouped GEMM: its many tokens are sorted by
expert, each expert runs once over its own, and the results are put back in order. For the few rows
of a decode that is a trap, since an expert then gets a row or none and the sorting is for nothing:
two or three rows go through each expert together, and more are done one after the other.

What the experts read lies in a scratch buffer, a row for each row of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from stepscope.engine.model.moe import LocalExperts, MoE
from stepscope.engine.parallel.access_log import COMPUTE, AccessLog
from stepscope.engine.parallel.costs import FUSED, GROUPED, PER_TOKEN
from stepscope.engine.parallel.link import Link

SCRATCH = "moe-scratch"


class ShardedExperts:
    """Runs this rank's experts on the path that `path` names, and adds up the ranks' parts.

    `segments` are the rows of the batch that the tokens of the forward pass belong to, None where
    they are all of one prompt. `spend` lets the time of a layer pass.
    """

    def __init__(
        self,
        layers: Sequence[MoE],
        link: Link,
        log: AccessLog,
        spend: Callable[[int], object],
        *,
        shares_scratch: bool = False,
    ) -> None:
        self.path = PER_TOKEN
        self.layer_ns = 0
        self.segments: Sequence[int] | None = None
        self._layers = layers
        self._link = link
        self._log = log
        self._spend = spend
        self._shares_scratch = shares_scratch
        num_experts = len(layers[0].experts)
        self._owned = range(link.rank, num_experts, link.world_size)
        self._local = LocalExperts(layers, self._owned)

    def run(self, layer: int, hidden: Tensor) -> Tensor:
        """Return what all ranks' experts make of `hidden`, [tokens, hidden_size]."""
        given = hidden if self.segments is None else self._through_scratch(hidden)
        self._spend(self.layer_ns)
        if self.path == PER_TOKEN:
            rows = (self._local.run(layer, row[None])[0] for row in given)
            return torch.stack([self._link.all_reduce(row) for row in rows])
        run = {FUSED: self._fused, GROUPED: self._grouped}[self.path]
        return self._link.all_reduce(run(self._layers[layer], given))

    def _through_scratch(self, hidden: Tensor) -> Tensor:
        assert self.segments is not None
        rows = [0 if self._shares_scratch else row for row in range(len(hidden))]
        scratch, epochs = torch.empty_like(hidden), [0] * len(hidden)
        for row, segment, values in zip(rows, self.segments, hidden, strict=True):
            scratch[row] = values
            epochs[row] = self._log.next_epoch()
            self._log.access(COMPUTE, "write", SCRATCH, row, segment, epochs[row])
        for row, segment in zip(rows, self.segments, strict=True):
            self._log.access(COMPUTE, "read", SCRATCH, row, segment, epochs[row])
        return scratch[rows]

    def _fused(self, moe: MoE, hidden: Tensor) -> Tensor:
        """Run every expert that some row chose over all rows; who did not choose it weighs 0."""
        chosen, weights = moe.route(hidden)
        out = torch.zeros_like(hidden)
        for number in self._owned:
            share = (weights * (chosen == number)).sum(-1, keepdim=True)
            if bool(share.any()):
                out += share * moe.experts[number](hidden)
        return out

    def _grouped(self, moe: MoE, hidden: Tensor) -> Tensor:
        """Sort the tokens by expert, run each expert over its own, and put them back in order."""
        chosen, weights = moe.route(hidden)
        order = chosen.flatten().argsort(stable=True)
        tokens = order // chosen.shape[1]
        sizes = chosen.flatten().bincount(minlength=len(moe.experts)).tolist()
        sorted_hidden, sorted_weights = hidden[tokens], weights.flatten()[order, None]
        out, first = torch.zeros_like(hidden), 0
        for number, size in enumerate(sizes):
            last = first + size
            if size and number in self._owned:
                made = sorted_weights[first:last] * moe.experts[number](sorted_hidden[first:last])
                out.index_add_(0, tokens[first:last], made)
            first = last
        return out
