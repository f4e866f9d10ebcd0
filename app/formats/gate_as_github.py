"""Conditions of `diff --fail-on` as GitHub workflow commands: an annotation for each that fails."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analyzers.gate.judge import Judged
from stepscope.app.formats.as_github import as_property, as_value


def render(name: str, judged: Sequence[Judged]) -> str:
    """An error for each condition that fails, a notice where none does."""
    failed = [each for each in judged if each.fails]
    if not failed:
        said = ", ".join(each.condition.text for each in judged)
        return f"::notice title=stepscope::{as_value(f'{name}: nothing fails of {said}')}"
    return "\n".join(
        f"::error title={as_property(each.condition.text)}::{as_value(f'{name}: {each.said}')}"
        for each in failed
    )
