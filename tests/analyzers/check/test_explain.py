"""A rule's page is the docstring of its module, below what its family looks at."""

from __future__ import annotations

import sys

import pytest

from stepscope.analyzers.check.explain import SECTIONS, explain
from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.findings.rule import Rule
from stepscope.ingest.errors import ConfigError
from tests.looped import looped


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_has_every_section_with_something_in_it(rule: Rule) -> None:
    page = explain(rule.code)

    parts = page.split("\n## ")
    assert tuple(part.partition("\n")[0] for part in parts[1:]) == SECTIONS
    assert all(len(part.partition("\n")[2].strip()) > 40 for part in parts[1:])


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_is_headed_by_code_name_severity_and_what_it_needs(rule: Rule) -> None:
    head, _, details = explain(rule.code).partition("\n\n")

    assert head == f"# {rule.code} {rule.name}"
    assert details.startswith(f"{rule.severity} · needs {', '.join(rule.needs) or 'any trace'}\n")


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_module_begins_with_the_name_of_its_rule(rule: Rule) -> None:
    docstring = sys.modules[type(rule).__module__].__doc__ or ""

    assert docstring.startswith(f"{rule.name}: ")


@looped("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_says_what_the_rules_of_its_family_look_at(rule: Rule) -> None:
    family = sys.modules[type(rule).__module__.rpartition(".")[0]].__doc__ or ""

    assert family
    assert f"\n\n{family.strip()}\n\n## What it finds\n" in explain(rule.code)


CORE_RULES = [rule.code for rule in RULES if rule.code.startswith("COR")]


@looped("code", CORE_RULES)
def test_a_page_about_core_groups_says_what_the_names_of_cores_are_before_it_uses_them(
    code: str,
) -> None:
    page = " ".join(explain(code).split())

    first = [page.index(name) for name in ("AIC", "AIV", "MIX")]
    assert first == [
        page.index(said) + len(said) - 3
        for said in ("is one cube core (AIC", "two vector cores (AIV", "cores (AIV). A MIX")
    ]


def test_an_unknown_code_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        explain("STV01")
