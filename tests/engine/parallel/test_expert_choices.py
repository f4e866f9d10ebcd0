"""Which path the experts take in a decode of several rows."""

from __future__ import annotations

import pytest

from stepscope.engine.parallel.costs import ATTENTION, GROUPED, KINDS, PATHS
from stepscope.engine.parallel.expert_choices import (
    BY_WIDTH,
    EXPERT_CHOICES,
    GROUPED_ATTENTION,
    GROUPED_GEMM,
    ExpertChoice,
    expert_choice,
)
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.scenarios.ep_multiplexing import VARIANTS
from stepscope.ingest.errors import ConfigError
from tests.engine.ep_runs import served

choices = pytest.mark.parametrize("choice", EXPERT_CHOICES, ids=lambda choice: choice.name)


def test_no_two_choices_have_one_name() -> None:
    assert len({each.name for each in EXPERT_CHOICES}) == len(EXPERT_CHOICES)


def test_every_choice_is_a_path_that_costs_are_known_of() -> None:
    unknown = [
        (choice.name, kind, by_width)
        for choice in EXPERT_CHOICES
        for kind in KINDS
        for by_width in PATHS
        if choice.path(kind, by_width) not in {by_width, GROUPED}
    ]

    assert unknown == []


@pytest.mark.parametrize(("choice", "grouped"), [
    (BY_WIDTH, set()), (GROUPED_GEMM, {*KINDS}), (GROUPED_ATTENTION, {ATTENTION}),
], ids=lambda each: getattr(each, "name", ""))  # fmt: skip
def test_a_choice_groups_the_layers_that_its_name_says(
    choice: ExpertChoice, grouped: set[str]
) -> None:
    assert {kind for kind in KINDS if choice.path(kind, "fused") == GROUPED} == grouped


@choices
def test_a_rank_in_another_process_is_told_which_choice_it_makes(choice: ExpertChoice) -> None:
    config = ParallelConfig(experts=choice.name)

    assert expert_choice(ParallelConfig.from_dict(config.as_dict()).experts) is choice


@choices
def test_every_choice_serves_what_the_model_says_to_each_request_alone(
    choice: ExpertChoice,
) -> None:
    variant = next(
        name
        for name, config in VARIANTS.items()
        if config.experts == choice.name and config.num_slots > 1
    )

    assert served(variant, requests="4")["equal_to_solo"] == "4/4"


def test_a_choice_that_is_not_known_is_refused_with_all_that_are() -> None:
    with pytest.raises(ConfigError) as refused:
        ParallelConfig(experts="by-chance")

    assert refused.value.todo == f"choose one of {', '.join(each.name for each in EXPERT_CHOICES)}"
