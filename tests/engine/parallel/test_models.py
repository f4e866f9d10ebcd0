"""What a rank computes its model with: every kind says the same."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.parallel.costs import FUSED, GROUPED, PER_TOKEN
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.shares.models import MODELS, PLAIN, ModelKind, model_kind
from stepscope.engine.parallel.shares.rank_model import model_config
from stepscope.ingest.errors import ConfigError

PROMPT, SEED = [3, 1, 4, 1, 5], 7
EXPERTS = range(model_config(SEED).num_experts)
HAS_TORCH = find_spec("torch") is not None
kinds = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(each, marks=pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed"))
        if each.name == "torch"
        else each
        for each in MODELS
    ],
    ids=lambda kind: kind.name,
)


def test_no_two_models_have_one_name() -> None:
    assert len({each.name for each in MODELS}) == len(MODELS)


@kinds
def test_every_model_answers_a_request_alone_with_the_same_tokens(kind: ModelKind) -> None:
    with kind.computing():
        told = kind.alone(SEED)(PROMPT, 12)

    assert told.tokens == PLAIN.alone(SEED)(PROMPT, 12).tokens


@kinds
@pytest.mark.parametrize("path", [FUSED, GROUPED, PER_TOKEN])
def test_the_parts_of_ranks_add_up_to_what_one_rank_with_all_experts_computes(
    kind: ModelKind, path: str
) -> None:
    hidden = np.random.default_rng(SEED).normal(size=(3, model_config(SEED).hidden_size))
    with kind.computing():
        whole = kind.made(SEED, 1, 8, EXPERTS).run_path(path, 0, hidden)
        parts = [
            kind.made(SEED, 1, 8, EXPERTS[rank::2]).run_path(path, 0, hidden) for rank in (0, 1)
        ]

    assert np.allclose(sum(parts), whole)


@kinds
def test_a_prompt_leaves_the_same_logits_whichever_model_computes_it(kind: ModelKind) -> None:
    def logits(of: ModelKind) -> list[float]:
        with of.computing():
            made = of.made(SEED, 1, 8, EXPERTS)
            rows = [RowTokens(PROMPT, 0, [0])]
            hidden = made.forward(
                rows, lambda layer, given: made.run_path(GROUPED, layer, given), is_prefill=True
            )
            return list(made.logits(hidden[-1:])[0])

    assert np.allclose(logits(kind), logits(PLAIN))


@kinds
def test_a_rank_in_another_process_is_told_which_model_it_has(kind: ModelKind) -> None:
    config = ParallelConfig(model=kind.name)

    assert model_kind(ParallelConfig.from_dict(config.as_dict()).model) is kind


def test_a_model_that_is_not_known_is_refused_with_all_that_are() -> None:
    with pytest.raises(ConfigError) as refused:
        model_kind("abacus")

    assert refused.value.todo == f"choose one of {', '.join(each.name for each in MODELS)}"


@kinds
def test_torch_is_left_with_as_many_threads_as_it_had(kind: ModelKind) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()

    with kind.computing():
        pass

    assert torch.get_num_threads() == before
