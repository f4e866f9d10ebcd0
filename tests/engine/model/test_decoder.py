"""The decoder: pages, chunks and neighbours change nothing that the dense reference says."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.model.layers.tokenwise import rotate
from stepscope.engine.model.solo import dense_logits, solo
from stepscope.ingest.errors import ConfigError
from tests.engine.decoding import (
    CLOSE,
    COMPRESSED,
    CONFIGS,
    DENSE,
    MOE,
    TINY,
    chunked,
    decoder,
    prompt,
)
from tests.looped import looped
from tests.tiers import examples, slow

sizes = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@given(st.sampled_from(CONFIGS), sizes, st.sampled_from([0, 3, 14]))
@settings(max_examples=examples(40))
def test_chunks_pages_and_neighbours_give_the_dense_logits(
    config: ModelConfig, chunks: list[int], beside: int
) -> None:
    model, tokens = decoder(config), prompt(sum(chunks))

    assert torch.allclose(
        chunked(model, tokens, chunks, beside), dense_logits(model, tokens), rtol=0, atol=CLOSE
    )


@given(st.sampled_from(CONFIGS), st.integers(1, 12), st.integers(1, 6))
@settings(max_examples=examples(40))
def test_decoding_token_by_token_or_several_at_once_gives_the_dense_logits(
    config: ModelConfig, prompt_len: int, width: int
) -> None:
    model, tokens = decoder(config), prompt(prompt_len + 2 * width)
    kv, table = KVCache(config, 8, 4), [5, 2, 7, 0, 1, 3]
    rows = [RowTokens(tokens[:prompt_len], 0, table)]
    parts = [model(ModelInput.of(kv, rows, is_prefill=True), kv)]
    for first in range(prompt_len, len(tokens), width):
        rows = [RowTokens(tokens[first : first + width], first, table)]
        parts.append(model(ModelInput.of(kv, rows, is_prefill=False), kv))

    logits = model.logits(torch.cat(parts))

    assert torch.allclose(logits, dense_logits(model, tokens), rtol=0, atol=CLOSE)


def test_an_empty_prefix_beside_a_long_one_is_not_a_number_with_the_fault_alone() -> None:
    tokens = prompt(5)

    assert not chunked(decoder(DENSE), tokens, [5], beside=14).isnan().any()
    assert chunked(decoder(DENSE, "empty-merge-nan"), tokens, [5], beside=14).isnan().all()
    assert not chunked(decoder(DENSE, "empty-merge-nan"), tokens, [5]).isnan().any()


def test_history_seen_by_chunk_end_makes_chunks_differ_from_a_single_shot() -> None:
    tokens = prompt(20)
    cuts = [7, 6, 7]
    faulty = decoder(COMPRESSED, "history-seen-by-chunk-end")

    sound_gap = (
        chunked(decoder(COMPRESSED), tokens, cuts) - chunked(decoder(COMPRESSED), tokens, [20])
    ).abs()
    faulty_gap = (chunked(faulty, tokens, cuts) - chunked(faulty, tokens, [20])).abs()

    assert sound_gap.max() < CLOSE
    assert faulty_gap[:13].max() > 0.1


def test_the_compressed_history_matters() -> None:
    tokens = prompt(20)
    near = ModelConfig(**TINY, chunk_tokens=4, window=6, ratios=(1000,))

    gap = dense_logits(decoder(COMPRESSED), tokens) - dense_logits(decoder(near), tokens)

    assert gap[-1].abs().max() > 0.1


def test_a_layer_of_ratio_0_sees_all_and_each_other_one_its_own_blocks() -> None:
    tokens = prompt(20)
    config = ModelConfig(**{**TINY, "num_layers": 3}, chunk_tokens=4, window=6, ratios=(0, 3, 9))
    model = decoder(config)

    logits = chunked(model, tokens, [7, 6, 7])

    assert [config.ratio_of(layer) for layer in range(3)] == [0, 3, 9]
    assert torch.allclose(logits, dense_logits(model, tokens), rtol=0, atol=CLOSE)
    all_dense = decoder(ModelConfig(**{**TINY, "num_layers": 3}, chunk_tokens=4))
    assert (logits - dense_logits(all_dense, tokens))[-1].abs().max() > 0.1


def test_positions_turn_pairs_of_features_and_only_distances_count() -> None:
    heads = torch.randn(2, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    near, far = (rotate(heads, torch.tensor([at, at + 3]), 10_000.0) for at in (0, 500))

    assert torch.allclose(near[0, 0] @ near[1, 0], far[0, 0] @ far[1, 0])
    assert torch.allclose(heads.norm(dim=-1), far.norm(dim=-1))
    assert not torch.allclose(near[0, 0] @ near[1, 0], heads[0, 0] @ heads[1, 0])


@slow
@looped("config", CONFIGS)
def test_outputs_depend_on_the_whole_history_and_say_many_things(config: ModelConfig) -> None:
    tokens = prompt(20)
    changed = [tokens[0] % 60 + 4, *tokens[1:]]

    one, other = (solo(decoder(config), start, 24) for start in (tokens, changed))

    assert one.tokens != other.tokens
    assert len(set(one.tokens)) > 8


def test_the_same_seed_gives_the_same_weights_and_another_one_others() -> None:
    one, same, other = (
        dense_logits(type(decoder(DENSE))(ModelConfig(**TINY, seed=seed)), [5, 6, 7])
        for seed in (1, 1, 2)
    )

    assert torch.equal(one, same)
    assert not torch.allclose(one, other)


def test_what_nobody_wrote_is_not_a_number() -> None:
    kv = KVCache(DENSE, 2, 4)
    model = decoder(DENSE)

    hidden = model(ModelInput.of(kv, [RowTokens([5], 3, [1])], is_prefill=False), kv)

    assert hidden.isnan().all()


@looped(
    ("sizes_of", "message"),
    [
        ({"num_heads": 3}, "do not divide"),
        ({"num_heads": 2, "num_kv_heads": 4}, "do not divide"),
        ({"num_experts": 1}, "experts_per_token 2 exceeds"),
        ({"vocab_size": 3}, "leaves no token"),
        ({"chunk_tokens": 0}, "at least 1"),
    ],
)
def test_impossible_sizes_are_refused(sizes_of: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelConfig(**sizes_of)  # type: ignore[arg-type]  # none of them is the ratios


@slow
def test_nothing_but_the_model_and_its_executors_imports_torch() -> None:
    code = (
        "import sys, stepscope.engine.scenarios, stepscope.engine.model.decoder_config; "
        "sys.exit('torch' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_experts_are_chosen_by_token() -> None:
    hidden = torch.randn(9, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    experts, weights = decoder(MOE).moe_layers[0].route(hidden)

    assert len(set(experts.flatten().tolist())) > 2
    assert torch.allclose(weights.sum(-1), torch.ones(9, dtype=torch.float64))
