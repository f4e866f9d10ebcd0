"""The decoder in NumPy computes what the one with torch does, and remembers by slot."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from stepscope.engine.model.cache.memory import Memory
from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.numpy_decoder import Array, RunExperts
from stepscope.engine.parallel.costs import PATHS, PER_TOKEN
from stepscope.engine.parallel.shares.numpy_model import PlainModel, solo
from stepscope.engine.parallel.shares.rank_model import RankModel, model_config

SEED, SLOTS, ROOM, EXPERTS = 3, 3, 48, range(8)
PROMPTS = ([3, 9, 4, 4, 7, 12, 5], [11, 3], [6, 15, 8, 3])
TOKENS = ([5, 8], [9, 3], [14, 4])
Row = tuple[Sequence[int], int, int]  # tokens, first, slot


def _module(name: str) -> Any:
    """A module of the engine that needs torch."""
    pytest.importorskip("torch")
    return import_module(f"stepscope.engine.{name}")


def with_torch(owned: range = EXPERTS) -> RankModel:
    model: RankModel = _module("parallel.shares.torch_model").TorchModel(SEED, SLOTS, ROOM, owned)
    return model


def plain(owned: range = EXPERTS) -> RankModel:
    return PlainModel(SEED, SLOTS, ROOM, owned)


def by(model: RankModel, path: str) -> RunExperts:
    return lambda layer, hidden: model.run_path(path, layer, hidden)


def said(model: RankModel, *rows: Row, path: str = PER_TOKEN, is_prefill: bool = False) -> Array:
    """Logits of the last token of each row."""
    given = [RowTokens(tokens, first, [slot]) for tokens, first, slot in rows]
    hidden = model.forward(given, by(model, path), is_prefill=is_prefill)
    return model.logits(hidden[np.cumsum([len(tokens) for tokens, _, _ in rows]) - 1])


def served(model: RankModel) -> list[Array]:
    """Three prompts, and two steps in which all are decoded."""
    told = [said(model, (prompt, 0, slot), is_prefill=True) for slot, prompt in enumerate(PROMPTS)]
    for step in range(2):
        rows = [
            ([tokens[step]], len(prompt) + step, slot)
            for slot, (prompt, tokens) in enumerate(zip(PROMPTS, TOKENS, strict=True))
        ]
        told.append(said(model, *rows))
    return told


def test_prompts_and_decodes_give_the_logits_that_torch_gives() -> None:
    for one, other in zip(served(plain()), served(with_torch()), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("owned", [EXPERTS, range(1, 8, 2)])
def test_every_path_of_the_experts_makes_what_torch_makes(path: str, owned: range) -> None:
    hidden = np.random.default_rng(0).standard_normal((5, 64))

    for layer in range(2):
        ours = plain(owned).run_path(path, layer, hidden)
        np.testing.assert_allclose(
            ours, with_torch(owned).run_path(path, layer, hidden), rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            ours, plain(owned).run_path(PER_TOKEN, layer, hidden), rtol=0, atol=1e-12
        )


def test_experts_of_two_ranks_add_up_to_those_of_one() -> None:
    hidden = np.random.default_rng(0).standard_normal((5, 64))

    halves = [plain(range(rank, 8, 2)).run_path(PER_TOKEN, 0, hidden) for rank in (0, 1)]

    np.testing.assert_allclose(sum(halves), plain().run_path(PER_TOKEN, 0, hidden), atol=1e-12)


@pytest.mark.parametrize("made", [plain, with_torch])
def test_tokens_that_are_taken_back_leave_no_trace(made: type[RankModel]) -> None:
    guessed, never = made(), made()
    for model in (guessed, never):
        said(model, (PROMPTS[0], 0, 1), is_prefill=True)
    said(guessed, ([4, 9, 9, 9], 7, 1))
    guessed.take_back(1, 3)
    said(never, ([4], 7, 1))

    np.testing.assert_allclose(
        said(guessed, ([6], 8, 1)), said(never, ([6], 8, 1)), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("made", [plain, with_torch])
def test_a_sequence_goes_on_in_the_slot_that_it_was_moved_to(made: type[RankModel]) -> None:
    moved, stayed = made(), made()
    for model in (moved, stayed):
        said(model, (PROMPTS[0], 0, 1), is_prefill=True)
        said(model, (PROMPTS[1], 0, 0), is_prefill=True)
    moved.move(1, 0)

    assert said(moved, ([6], 7, 0)).tolist() == said(stayed, ([6], 7, 1)).tolist()


@pytest.mark.parametrize("made", [plain, with_torch])
def test_what_a_slot_forgets_the_next_sequence_does_not_see(made: type[RankModel]) -> None:
    used, new = made(), made()
    said(used, (PROMPTS[0], 0, 1), is_prefill=True)
    kept = said(used, (PROMPTS[1], 0, 1), is_prefill=True)
    used.forget(1)

    first = said(new, (PROMPTS[1], 0, 1), is_prefill=True)
    assert said(used, (PROMPTS[1], 0, 1), is_prefill=True).tolist() == first.tolist()
    assert kept.tolist() != first.tolist()


def test_alone_a_request_gets_what_torch_says_to_it_computed_densely() -> None:
    decoder = _module("parallel.shares.torch_model").decoder_of(SEED)

    ours = solo(SEED, PROMPTS[0], 12)
    theirs = _module("model.solo").solo(decoder, PROMPTS[0], 12)

    assert ours.tokens == theirs.tokens
    assert ours.digests == theirs.digests
    assert ours.margin == pytest.approx(theirs.margin, abs=1e-9)


def test_an_output_ends_where_its_workload_says() -> None:
    assert len(solo(SEED, PROMPTS[0], 12, eos_after=4).tokens) == 4


def test_memory_goes_back_only_as_far_as_the_last_pass() -> None:
    memory = Memory(0)
    memory.remember(0, 2, [1, 2])
    memory.remember(0, 2, [3, 4, 5])

    memory.take_back(2, 2)
    assert memory.last(0, 2) == 3
    memory.take_back(2, 1)
    assert memory.last(0, 2) == 2
    assert memory.last(1, 2) == memory.last(0, 1) == 0


def test_memory_of_a_slot_that_moves_is_the_targets_alone() -> None:
    memory = Memory(0)
    memory.remember(0, 0, [1])
    memory.remember(1, 0, [2])
    memory.remember(0, 2, [7])

    memory.move(2, 0)

    assert [memory.last(layer, slot) for slot in (0, 2) for layer in (0, 1)] == [7, 0, 0, 0]


def test_the_model_has_a_layer_with_recurrent_state_and_one_with_attention() -> None:
    config = model_config(SEED)

    assert (config.num_layers, config.num_recurrent) == (2, 1)
