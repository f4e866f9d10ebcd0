"""`docs/glossary.md` fixes each term once: whatever a screen or a column says stands there."""

from __future__ import annotations

import re

from stepscope.analyzers.check.registry import FAMILIES, RULES
from stepscope.analyzers.latency.causes import CAUSES
from stepscope.app.palette import STATES
from stepscope.ingest.columns import Table
from stepscope.ingest.schema import TABLES
from tests.conftest import ROOT
from tests.looped import looped

PAGE = (ROOT / "docs" / "glossary.md").read_text("utf-8")
DEFINITIONS = re.findall(
    r"^\| ([^|]+) \| (\S[^|]*) \|$", PAGE.partition("\n## Words that are gone")[0], re.MULTILINE
)
TERMS = {term for cell, _ in DEFINITIONS for term in re.findall(r"`([\w -]+)`", cell)}
"""What stands in the first column of a table, beside what it is; elsewhere a term is only used."""
NOT_A_STATE = ("nothing", "counter", "span ", "name ", "other names", "owner ")
"""Of what the palette has, what is drawn where no state is."""


@looped("table", TABLES, ids=lambda table: table.name)
def test_every_table_and_every_value_of_its_columns_is_explained(table: Table) -> None:
    values = {value for column in table.columns for value in column.values}

    assert {table.name, *values} <= TERMS


def test_every_cause_of_blame_is_explained() -> None:
    assert {cause.name for cause in CAUSES} <= TERMS


def test_every_state_that_is_drawn_is_explained() -> None:
    drawn = {state.name for state in STATES if not state.name.startswith(NOT_A_STATE)}

    assert drawn <= TERMS


def test_every_family_of_rules_is_explained() -> None:
    families = PAGE.partition("## Families of rules")[2]

    assert {rule.code[:3] for rule in RULES} == set(FAMILIES)
    assert tuple(re.findall(r"^\| `(\w+)` \|", families, re.MULTILINE)) == FAMILIES


def test_no_term_is_explained_twice_under_one_heading() -> None:
    for part in PAGE.split("\n## "):
        terms = re.findall(r"^\| ([^|]+) \|", part, re.MULTILINE)
        told = [term for cell in terms for term in re.findall(r"`[\w-]+`|\*\*[^*]+\*\*", cell)]
        assert len(told) == len(set(told)), part.splitlines()[0]
