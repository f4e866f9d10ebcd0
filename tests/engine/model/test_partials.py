"""Attention in parts: any cut of the keys gives what all of them give, and nothing gives 0."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as all of torch's own pages call it

from stepscope.engine.model.layers.partials import Partial, attend, merge

HEADS, KV_HEADS, HEAD_DIM = 4, 2, 6


def drawn(seed: int, num_tokens: int, num_keys: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Query, key, value, and which keys each token sees; some tokens see none."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    is_visible = torch.rand(num_tokens, num_keys, generator=generator) < 0.6
    is_visible[0] = False
    return (
        normal(num_tokens, HEADS, HEAD_DIM),
        normal(num_keys, KV_HEADS, HEAD_DIM),
        normal(num_keys, KV_HEADS, HEAD_DIM),
        is_visible,
    )


@given(st.integers(0, 99), st.integers(1, 5), st.integers(0, 12), st.lists(st.integers(0, 12)))
def test_parts_cut_anywhere_merge_to_one_softmax_over_all_keys(
    seed: int, num_tokens: int, num_keys: int, cuts: list[int]
) -> None:
    query, key, value, is_visible = drawn(seed, num_tokens, num_keys)
    merged = Partial.of_nothing(query)
    edges = sorted([0, num_keys, *(min(cut, num_keys) for cut in cuts)])

    for first, last in pairwise(edges):
        part = attend(query, key[first:last], value[first:last], is_visible[:, first:last])
        merged = merge(merged, part)

    whole = attend(query, key, value, is_visible)
    assert torch.allclose(merged.out, whole.out, rtol=0, atol=1e-12)
    assert torch.allclose(merged.lse, whole.lse, rtol=0, atol=1e-12)


def test_a_part_is_the_softmax_that_torch_computes() -> None:
    query, key, value, is_visible = drawn(3, 5, 9)

    ours = attend(query, key, value, is_visible).out[:, 1:]
    theirs = F.scaled_dot_product_attention(
        query[1:].transpose(0, 1)[None], key.transpose(0, 1)[None], value.transpose(0, 1)[None],
        attn_mask=is_visible[1:], enable_gqa=True,
    )[0]  # fmt: skip

    assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def test_who_sees_nothing_gets_zero() -> None:
    part = attend(*drawn(1, 3, 4))

    assert part.out[:, 0].eq(0).all()
    assert part.lse[:, 0].eq(-torch.inf).all()


@pytest.mark.parametrize("num_keys", [0, 4])
def test_nothing_merged_with_nothing_is_zero_and_with_the_fault_not_a_number(
    num_keys: int,
) -> None:
    query, key, value, is_visible = drawn(1, 1, num_keys)
    empty = attend(query, key, value, is_visible)

    sound = merge(Partial.of_nothing(query), empty)
    faulty = merge(Partial.of_nothing(query), empty, guards_empty=False)

    assert sound.out.eq(0).all()
    assert sound.lse.eq(-torch.inf).all()
    assert faulty.out.isnan().all()


def test_one_empty_part_is_harmless_even_with_the_fault() -> None:
    query, key, value, _ = drawn(1, 2, 5)
    whole = attend(query, key, value, torch.ones(2, 5, dtype=torch.bool))

    for parts in ((Partial.of_nothing(query), whole), (whole, Partial.of_nothing(query))):
        merged = merge(*parts, guards_empty=False)
        assert torch.equal(merged.out, whole.out)
