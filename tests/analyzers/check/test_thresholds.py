"""Thresholds of rules, as a project states them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from stepscope.analyzers.check.registry import RULES, by_code
from stepscope.analyzers.check.thresholds import checked, thresholds, tune
from stepscope.analyzers.findings.rule import Rule
from stepscope.ingest.errors import ConfigError
from tests.looped import looped


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_every_threshold_of_every_rule_can_be_stated(rule: Rule) -> None:
    wanted = {name: value + 1 for name, value in thresholds(rule).items()}

    (tuned,) = tune([rule], {rule.code: wanted})

    assert thresholds(tuned) == wanted
    assert type(tuned) is type(rule)


def test_rules_that_nothing_is_stated_for_stay_as_they_are() -> None:
    tuned = tune(RULES, {"COR003": {"max_share": 0.5}})

    changed = [old.code for old, new in zip(RULES, tuned, strict=True) if old != new]
    assert changed == ["COR003"]


def test_a_rule_may_be_named_in_words_and_a_whole_number_is_a_number() -> None:
    assert checked({"mix-parts-skewed": {"max_share": 1}}) == {"COR003": {"max_share": 1.0}}


@looped(
    ("stated", "message"),
    [
        ({"COR01": {}}, r"there is no rule 'COR01'; did you mean .*COR01"),
        ({"COR003": {"max_shares": 1}}, r"COR003 has no threshold 'max_shares'.*max_share\?"),
        ({"COR003": {"x": 1}}, r"COR003 has no threshold 'x'; it has max_share, min_run_ns, limit"),
        ({"COR003": {"limit": "5"}}, r"COR003.limit: Expected `int`, got `str`"),
        ({"COR003": {"limit": 0.5}}, r"COR003.limit: Expected `int`, got `float`"),
        ({"COR003": {"limit": True}}, r"COR003.limit: Expected `int`, got `bool`"),
        ({"COR003": {"limit": -1}}, r"COR003.limit is -1, and has to be finite and not below 0"),
        ({"COR003": {"max_share": math.nan}}, r"COR003.max_share is nan"),
        ({"COR003": {"max_share": math.inf}}, r"COR003.max_share is inf"),
        ({"COR003": {"max_share": [1]}}, r"COR003.max_share: Expected `float`, got `array`"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_could(
    stated: dict[str, dict[str, Any]], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        checked(stated)


def test_tuning_leaves_the_registry_alone() -> None:
    before = dataclasses.astuple(by_code("COR003"))  # type: ignore[call-overload]  # a rule is a dataclass

    tune(RULES, {"COR003": {"limit": 1}})

    assert dataclasses.astuple(by_code("COR003")) == before  # type: ignore[call-overload]  # a rule is a dataclass
