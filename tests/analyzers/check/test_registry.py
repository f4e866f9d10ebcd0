"""All rules, and how to pick some of them."""

from __future__ import annotations

import dataclasses
import importlib
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers import rules
from stepscope.analyzers.check.registry import RULES, by_code, select
from stepscope.analyzers.findings.rule import Rule
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from tests.looped import looped

FOLDER = Path(str(rules.__file__)).parent
FILES = {file.stem: file.parent.name for file in FOLDER.glob("*/[a-z][a-z][a-z][0-9]*.py")}


def test_every_rule_file_is_registered_in_the_order_of_its_code() -> None:
    named = [f"{rule.code.lower()}_{rule.name.replace('-', '_')}" for rule in RULES]

    assert sorted(named) == sorted(FILES)
    assert [type(rule).__module__.rpartition(".")[2] for rule in RULES] == named


def test_no_code_and_no_name_is_used_twice() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_a_frozen_dataclass_of_thresholds(rule: Any) -> None:
    assert dataclasses.is_dataclass(rule)
    for field in dataclasses.fields(rule):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(rule, field.name, None)


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_needs_tables_and_columns_of_the_schema(rule: Rule) -> None:
    assert re.fullmatch(r"[A-Z]{3}\d{3}", rule.code)
    for need in rule.needs:
        table, _, column = need.partition(".")
        assert not column or column in BY_NAME[table].names, need


def test_a_rule_is_found_by_its_code_in_any_case_and_by_its_name() -> None:
    assert by_code("cor001") is by_code("COR001") is by_code("mix-on-occupied-group")


def test_a_code_that_is_nearly_right_is_answered_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match=r"no rule 'CORO01'; did you mean .*COR001 \(mix-on"):
        by_code("CORO01")


def test_a_name_that_is_nearly_right_is_answered_with_its_code() -> None:
    with pytest.raises(ConfigError, match=r"did you mean STV001 \(request-starved\)"):
        by_code("requests-starving")


def test_a_code_like_no_other_is_answered_with_all_codes() -> None:
    with pytest.raises(ConfigError, match="the rules are COR001, COR002"):
        by_code("?")


@given(st.text())
def test_whatever_is_asked_for_a_rule_answers_or_it_is_refused(code: str) -> None:
    with suppress(ConfigError):
        assert by_code(code) in RULES


def test_selecting_by_family_and_ignoring_by_name() -> None:
    chosen = select(["COR00", "trc003"], ["core-double-booked", "COR006"])

    family = [f"COR00{number}" for number in (1, 3, 4, 5, 7, 8, 9)]
    assert [rule.code for rule in chosen] == [*family, "TRC003"]


def test_selecting_nothing_selects_everything() -> None:
    assert select() == RULES


@looped("entry", ["", "XYZ", "COR9"])
def test_an_entry_that_fits_no_rule_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="there is no rule"):
        select([], [entry])


def test_a_rule_lies_in_the_folder_of_its_family_and_is_imported_from_there() -> None:
    assert {family for stem, family in FILES.items() if not stem.startswith(family)} == set()
    assert all(importlib.import_module(f"{rules.__name__}.{FILES[stem]}.{stem}") for stem in FILES)


def test_every_rule_has_a_test_of_its_own_in_the_folder_of_its_family() -> None:
    tests = Path(__file__).parents[1] / "rules"

    assert [
        stem for stem, family in FILES.items() if not (tests / family / f"test_{stem}.py").exists()
    ] == []
