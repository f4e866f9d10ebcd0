"""Findings as JUnit XML: a suite for each trace, a case for each rule.

A rule fails its case when it found something that fails the check; what is less severe is the
case's output. With `--fail-on never` the errors are shown as failures. A rule that is not
applicable is skipped, one that is required to be fails. Where no rule could judge, the suite begins
with a case that is in error, and of a trace that cannot be read that case is all there is.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.findings.finding import Finding
from stepscope.app.formats import Asked, Checked, Rendered, Unread, clip, failing
from stepscope.app.present.report_text import lacks, unmet_line
from stepscope.app.present.where import where
from stepscope.app.printable import plain

MOST_LISTED = 100
MOST_CHARS = 2_000
# Beside what `plain` takes away, these have no place in XML 1.0.
_NOT_IN_XML = re.compile("[\ufffe\uffff]")


def render(checked: Sequence[Checked], asked: Asked) -> Rendered:
    """One document for all traces."""
    fail_on = "error" if asked.fail_on == "never" else asked.fail_on
    suites = [_suite(each, fail_on) for each in checked]
    return Rendered(document([*suites, *map(_unread, asked.unread)]))


def document(suites: Iterable[TestSuite]) -> str:
    """One document of these suites, counted."""
    report = JUnitXml("stepscope")
    for suite in suites:
        report.add_testsuite(suite)
    report.update_statistics()
    written = io.BytesIO()
    report.write(written)
    return written.getvalue().decode()


def _suite(checked: Checked, fail_on: str) -> TestSuite:
    result = checked.result
    suite = TestSuite(as_text(result.trace))
    by_rule: dict[str, list[Finding]] = {code: [] for code in result.counts}
    for finding in result.findings:
        by_rule[finding.code].append(finding)
    cases = [_case(code, found, checked.start_ns, fail_on) for code, found in by_rule.items()]
    absent = [_not_applicable(checked, code) for code in result.not_applicable]
    suite.add_property("coverage", result.coverage.share)
    suite.add_testcases([*_looked_at_nothing(checked), *cases, *absent])
    return suite


def _unread(unread: Unread) -> TestSuite:
    suite = TestSuite(as_text(unread.trace))
    case = TestCase("the trace can be read", "stepscope")
    case.result = [Error(as_text(unread.said), "unreadable")]
    suite.add_testcase(case)
    return suite


def _looked_at_nothing(checked: Checked) -> list[TestCase]:
    coverage = checked.result.coverage
    if coverage.verdict is None:
        return []
    case = TestCase("a rule could judge", "stepscope")
    error = Error(coverage.verdict, "not applicable")
    error.text = coverage.share
    case.result = [error]
    return [case]


def _case(code: str, found: list[Finding], start_ns: int, fail_on: str) -> TestCase:
    case = _named(code)
    if failed := failing(found, fail_on):
        failure = Failure(as_text(failed[0].message), str(failed[0].severity))
        failure.text = _listed(found, start_ns)
        case.result = [failure]
    elif found:
        case.system_out = _listed(found, start_ns)
    return case


def _not_applicable(checked: Checked, code: str) -> TestCase:
    case = _named(code)
    if code in checked.unmet:
        case.result = [Failure(f"{code} {unmet_line(code, checked.result)}", "required")]
    else:
        case.result = [Skipped(f"not applicable: {lacks(code, checked.result)}")]
    return case


def _named(code: str) -> TestCase:
    return TestCase(f"{code} {by_code(code).name}", f"stepscope.{code[:3]}")


def _listed(found: list[Finding], start_ns: int) -> str:
    lines = [f"{as_text(where(each, start_ns))}: {as_text(each.message)}" for each in found]
    more = [f"and {len(lines) - MOST_LISTED:,} more"] if len(lines) > MOST_LISTED else []
    return "\n".join([*lines[:MOST_LISTED], *more, f"fix: {as_text(found[0].fix)}"])


def as_text(text: str) -> str:
    """A text without what has no place in XML, and not too long."""
    return _NOT_IN_XML.sub("·", clip(plain(text), MOST_CHARS))
