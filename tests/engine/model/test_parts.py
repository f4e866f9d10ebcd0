"""Experts, sampling and drafts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.model import require_torch
from stepscope.engine.model.drafts import lookup_draft, num_accepted
from stepscope.engine.model.layers.moe import LocalExperts
from stepscope.engine.model.sampler import digest, greedy, margin
from stepscope.engine.requests.request import EOS_TOKEN
from stepscope.ingest.errors import MissingExtra
from tests.engine.decoding import MOE, decoder
from tests.looped import looped


@given(st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_what_the_ranks_that_share_the_experts_return_adds_up_to_the_whole(
    rank_of: list[int],
) -> None:
    layers = decoder(MOE).moe_layers
    hidden = torch.randn(7, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    shards = [
        LocalExperts(layers, [expert for expert in range(4) if rank_of[expert] == rank])
        for rank in (0, 1)
    ]

    summed = sum(shard.run(1, hidden) for shard in shards)

    assert torch.allclose(
        torch.as_tensor(summed), LocalExperts(layers).run(1, hidden), rtol=0, atol=1e-12
    )


def test_an_output_ends_where_its_workload_says_and_with_the_end_where_it_may_end_by_itself() -> (
    None
):
    logits = np.zeros(8)
    logits[EOS_TOKEN], logits[5] = 9.0, 1.0

    assert greedy(logits, 1) == greedy(logits, 1, eos_after=2) == 5
    assert greedy(logits, 2, eos_after=2) == EOS_TOKEN
    assert greedy(logits, 1, ends_at_eos=True) == EOS_TOKEN
    assert greedy(-logits, 1, ends_at_eos=True) == 0
    assert margin(logits) == 8.0


def test_a_digest_sees_what_matters_and_not_the_last_bits() -> None:
    logits = np.linspace(-3, 3, 64) + 1e-8
    changed = logits.copy()
    changed[7] += 1e-4
    broken = logits.copy()
    broken[7] = np.nan

    assert digest(logits) == digest(logits + 1e-13)
    assert digest(logits) != digest(changed)
    assert digest(broken) == "nan"


@looped(
    ("tokens", "drafts"),
    [
        ([1, 2, 3, 4, 1, 2], [3, 4]),
        ([9, 2, 7, 2, 8, 2], [8, 2]),
        ([1, 2, 3], [3, 3]),
        ([4], [4, 4]),
        ([5, 5], [5, 5]),
    ],
)
def test_what_followed_the_same_tokens_before_is_drafted(
    tokens: list[int], drafts: list[int]
) -> None:
    assert lookup_draft(tokens, 2) == drafts


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 4))
def test_there_are_as_many_drafts_as_asked_for(tokens: list[int], num_draft: int) -> None:
    assert len(lookup_draft(tokens, num_draft)) == num_draft


def test_drafts_are_accepted_up_to_the_first_wrong_one() -> None:
    assert num_accepted([4, 5, 6], [4, 5, 9, 1]) == 2
    assert num_accepted([4], [7, 8]) == 0
    assert num_accepted([], [7]) == 0


def test_a_missing_torch_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)

    with pytest.raises(MissingExtra, match=r"pip install 'stepscope\[torch\]'"):
        require_torch()
