"""A rule's page: the docstring of its module, below what the rules of its family look at."""

from __future__ import annotations

import inspect
import sys

from stepscope.analyzers import rules
from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.findings.rule import Rule

SECTIONS = ("What it finds", "Why it hurts", "Example", "How to fix", "References")


def explain(code: str) -> str:
    """The page of a rule as Markdown, headed by its code, name and severity, and by its family.

    Raises ConfigError, naming near matches, when there is no such rule.
    """
    rule = by_code(code)
    _, _, body = _page(rule).partition("\n")
    needs = ", ".join(rule.needs) or "any trace"
    head = [f"# {rule.code} {rule.name}", f"{rule.severity} · needs {needs}", *_family(rule)]
    return "\n\n".join([*head, body.strip()]) + "\n"


def summary(code: str) -> str:
    """What a rule finds, in one sentence; raises ConfigError as `explain` does."""
    first, _, _ = _page(by_code(code)).partition("\n")
    return first.partition(": ")[2]


def _family(rule: Rule) -> list[str]:
    """What a family looks at, as its folder says it; rules of other packages may lie anywhere."""
    package = type(rule).__module__.rpartition(".")[0]
    ours = package.startswith(f"{rules.__name__}.")
    return [inspect.cleandoc(sys.modules[package].__doc__ or "")] if ours else []


def _page(rule: Rule) -> str:
    return inspect.cleandoc(sys.modules[type(rule).__module__].__doc__ or "")
