"""The sizes of a decoder; no torch is needed to state them."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.engine.requests.request import EOS_TOKEN
from stepscope.ingest.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How large a decoder is, and which of its parts it has; the weights are drawn from `seed`.

    `num_experts` 0 is a dense MLP; otherwise each layer has so many experts, of which a token takes
    `experts_per_token`. The first `num_recurrent` layers have a recurrent state and no attention.
    `window` 0 sees the whole history token by token; otherwise a token sees the last `window`
    tokens, and all of its history in blocks, each pooled into one key and value: of so many tokens
    as the layer's number in `ratios` says, which layers take in turn; 0: that layer is dense, and
    sees the whole history token by token.
    History is attended to `chunk_tokens` at a time.
    """

    vocab_size: int = 256
    hidden_size: int = 64
    num_layers: int = 2
    num_heads: int = 4
    num_kv_heads: int = 2
    intermediate_size: int = 128
    num_experts: int = 0
    experts_per_token: int = 2
    num_recurrent: int = 0
    window: int = 0
    ratios: tuple[int, ...] = (4,)
    chunk_tokens: int = 128
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-6
    seed: int = 0

    def __post_init__(self) -> None:
        if self.hidden_size % (2 * self.num_heads) or self.num_heads % self.num_kv_heads:
            raise ConfigError(
                f"{self.num_heads} heads and {self.num_kv_heads} KV heads do not divide a hidden "
                f"size of {self.hidden_size}",
                todo="choose num_heads as a multiple of num_kv_heads, and an even head size",
            )
        if self.vocab_size < EOS_TOKEN + 2:
            raise ConfigError(
                f"vocab_size {self.vocab_size} leaves no token but the end of a sequence"
            )
        if 0 < self.num_experts < self.experts_per_token:
            raise ConfigError(
                f"experts_per_token {self.experts_per_token} exceeds num_experts {self.num_experts}"
            )
        if not 0 <= self.num_recurrent <= self.num_layers:
            raise ConfigError(
                f"num_recurrent {self.num_recurrent} is not between 0 and {self.num_layers} layers"
            )
        if self.chunk_tokens < 1 or not self.ratios or min(self.ratios) < 0:
            raise ConfigError(
                "chunk_tokens must be at least 1, and ratios must not be negative or missing"
            )

    def ratio_of(self, layer: int) -> int:
        """Tokens of a block of the layer's compressed history; 0: it sees all tokens."""
        return self.ratios[layer % len(self.ratios)] if self.window else 0

    @property
    def pooled_ratios(self) -> tuple[int, ...]:
        """The ratios by which histories are compressed, the smallest first; a plan for each."""
        return tuple(sorted(set(self.ratios) - {0})) if self.window else ()

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        return self.hidden_size // self.num_heads

    @property
    def token_bytes(self) -> int:
        """Bytes of a token's keys and values in all layers."""
        return self.num_layers * 2 * self.num_kv_heads * self.head_dim * 8
