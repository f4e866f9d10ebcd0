"""A rule's page, which is the docstring of its module."""

from __future__ import annotations

import inspect
import sys

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.findings.rule import Rule

SECTIONS = ("What it finds", "Why it hurts", "Example", "How to fix", "References")


def explain(code: str) -> str:
    """The page of a rule as Markdown, headed by its code, name and severity.

    Raises ConfigError, naming near matches, when there is no such rule.
    """
    rule = by_code(code)
    _, _, body = _page(rule).partition("\n")
    needs = ", ".join(rule.needs) or "any trace"
    return f"# {rule.code} {rule.name}\n\n{rule.severity} · needs {needs}\n\n{body.strip()}\n"


def summary(code: str) -> str:
    """What a rule finds, in one sentence; raises ConfigError as `explain` does."""
    first, _, _ = _page(by_code(code)).partition("\n")
    return first.partition(": ")[2]


def _page(rule: Rule) -> str:
    return inspect.cleandoc(sys.modules[type(rule).__module__].__doc__ or "")
