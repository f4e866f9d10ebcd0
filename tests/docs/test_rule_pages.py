"""docs/rules/ says what the rules' docstrings say, with a picture of each that can be seen."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.findings.rule import Rule
from stepscope.engine.scenarios import SCENARIOS
from tests.docs.rule_pages import (
    PAGES,
    PICTURES,
    drawn,
    fault_of,
    index,
    page,
    picture,
    run_of,
    shown_by,
)
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import sampled

AGAIN = "make docs"
LOG = "a log"
QUICK = (LOG, "fcfs-preemption", "mix-admission")
WITHOUT_A_PICTURE = frozenset(
    {"TRC001", "TRC002", "TRC003", "TRC004", "TRC005", "TRC007", "STV024", "STV025", "KVB010"}
)
"""Rules about a recording itself, about what the reference engine does not have (priorities,
resets), and about traces without batches: it always records these."""


@looped("rule", RULES, ids=lambda rule: rule.code)
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


def scenario_of(rule: Rule) -> str:
    """The scenario that shows a rule."""
    run = run_of(rule)
    return run[0] if run else LOG


@pytest.mark.parametrize("name", sampled([LOG, *(each.name for each in SCENARIOS)], QUICK))
def test_a_picture_is_drawn_from_the_trace_of_its_fault(
    name: str, recorded_once: RecordedOnce
) -> None:
    stale = {}
    for rule in RULES:
        if not shown_by(rule) or scenario_of(rule) != name or lacks_torch(rule):
            continue
        run = run_of(rule)
        is_timed = (fault := fault_of(rule)) is not None and fault.executor == "torch"
        svg = picture(rule) if not run or is_timed else drawn(rule, recorded_once.trace(*run))
        if svg != (PAGES / PICTURES / f"{rule.code}.svg").read_text(encoding="utf-8"):
            stale[rule.code] = svg

    assert list(stale) == [], AGAIN


def lacks_torch(rule: Rule) -> bool:
    fault = fault_of(rule)
    return fault is not None and fault.executor == "torch" and find_spec("torch") is None
