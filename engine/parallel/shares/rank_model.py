"""What a rank computes with, behind one Protocol: in NumPy, or with torch.

Both have the same weights and say the same. Values that ranks exchange are arrays, whichever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.numpy_decoder import Array, RunExperts, Weights, draw_weights

if TYPE_CHECKING:
    from stepscope.engine.model.cache.row_tokens import RowTokens


class RankModel(Protocol):
    """A decoder whose experts a rank has a part of, and what it holds of each slot."""

    def forward(self, rows: Sequence[RowTokens], experts: RunExperts, *, is_prefill: bool) -> Array:
        """Return the last hidden states of all rows' tokens, [T, hidden_size].

        `experts` is what runs the experts of a layer, on all ranks.
        """
        ...

    def logits(self, hidden: Array) -> Array:
        """Return the logits, [rows, vocab_size], of hidden states."""
        ...

    def run_path(self, path: str, layer: int, hidden: Array) -> Array:
        """Return this rank's part of what a layer's experts make of tokens, by one of the paths."""
        ...

    def forget(self, slot: int) -> None:
        """Forget the recurrent state of a slot; its KV is as long as its owner says."""
        ...

    def take_back(self, slot: int, num_tokens: int) -> None:
        """Put the recurrent state of a slot back by some tokens of the last pass."""
        ...

    def move(self, source: int, target: int) -> None:
        """Let slot `target` hold what `source` holds."""
        ...


def model_config(seed: int) -> ModelConfig:
    """Return the sizes of the model that every rank has: eight experts, two for each token.

    A layer with recurrent state and one with attention. Its vocabulary is so small that what it
    says repeats itself, and can be guessed at times.
    """
    return ModelConfig(
        vocab_size=16, num_experts=8, experts_per_token=2, num_recurrent=1, seed=seed
    )


@lru_cache(maxsize=4)
def weights_of(seed: int) -> Weights:
    """Return the weights of that model; all ranks read the same ones."""
    return draw_weights(model_config(seed))
