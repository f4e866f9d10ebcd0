"""Conditions of `diff --fail-on` as JUnit XML: a case each, in error where nobody can judge it."""

from __future__ import annotations

from collections.abc import Sequence

from junitparser import Error, Failure, TestCase, TestSuite

from stepscope.analyzers.gate.judge import Judged
from stepscope.app.formats.as_junit import as_text, document


def render(name: str, judged: Sequence[Judged]) -> str:
    """One suite, named for what is compared."""
    suite = TestSuite(as_text(name))
    suite.add_testcases([_case(each) for each in judged])
    return document([suite])


def _case(judged: Judged) -> TestCase:
    case = TestCase(judged.condition.text, "stepscope.diff")
    said = as_text(judged.said)
    if judged.failed:
        case.result = [Failure(said, "condition")]
    elif judged.failed is None:
        case.result = [Error(said, "not judged")]
    else:
        case.system_out = said
    return case
