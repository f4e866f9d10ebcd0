"""A rule's page is the docstring of its module."""

from __future__ import annotations

import sys

import pytest

from stepscope.analyzers.check.explain import SECTIONS, explain
from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.findings.rule import Rule
from stepscope.ingest.errors import ConfigError


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_has_every_section_with_something_in_it(rule: Rule) -> None:
    page = explain(rule.code)

    parts = page.split("\n## ")
    assert tuple(part.partition("\n")[0] for part in parts[1:]) == SECTIONS
    assert all(len(part.partition("\n")[2].strip()) > 40 for part in parts[1:])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_is_headed_by_code_name_severity_and_what_it_needs(rule: Rule) -> None:
    head, _, details = explain(rule.code).partition("\n\n")

    assert head == f"# {rule.code} {rule.name}"
    assert details.startswith(f"{rule.severity} · needs {', '.join(rule.needs) or 'any trace'}\n")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_module_begins_with_the_name_of_its_rule(rule: Rule) -> None:
    docstring = sys.modules[type(rule).__module__].__doc__ or ""

    assert docstring.startswith(f"{rule.name}: ")


def test_an_unknown_code_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        explain("STV01")
