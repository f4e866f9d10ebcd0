"""docs/rules/ says what the rules' docstrings say, with a picture of each that can be seen."""

from __future__ import annotations

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.findings.rule import Rule
from tests.docs.rule_pages import PAGES, PICTURES, fault_of, index, page, picture, shown_by

AGAIN = "make docs"
WITHOUT_A_PICTURE = frozenset({"TRC001", "TRC002", "TRC003", "TRC004", "TRC005"})
"""Rules about a recording itself, not about what happened in it."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_page_of_a_rule_is_its_docstring(rule: Rule) -> None:
    assert (PAGES / f"{rule.code}.md").read_text(encoding="utf-8") == page(rule), AGAIN


def test_the_index_lists_every_rule() -> None:
    assert (PAGES / "README.md").read_text(encoding="utf-8") == index(), AGAIN


def test_there_is_no_page_or_picture_of_a_rule_that_is_gone() -> None:
    codes = {rule.code for rule in RULES}
    written = {path.stem for path in PAGES.rglob("*.*")} - {"README"}

    assert written == codes, AGAIN


def test_every_rule_has_a_picture_but_those_about_the_recording() -> None:
    pictured = {path.stem for path in (PAGES / PICTURES).iterdir()}

    assert pictured == {rule.code for rule in RULES} - WITHOUT_A_PICTURE, AGAIN
    assert pictured == {rule.code for rule in RULES if shown_by(rule)}


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if shown_by(rule)], ids=lambda rule: rule.code
)
def test_a_picture_is_drawn_from_the_trace_of_its_fault(rule: Rule) -> None:
    if (fault := fault_of(rule)) and fault.executor == "torch":
        pytest.importorskip("torch")
    drawn = (PAGES / PICTURES / f"{rule.code}.svg").read_text(encoding="utf-8")

    assert picture(rule) == drawn, AGAIN
