"""Findings as text: ranked, grouped by rule, a few of each, with what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from stepscope.analyzers.check.coverage import BLIND
from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import ONLY_WHERE
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.known import CLOCK
from stepscope.app.palette import NOT_APPLICABLE, SEVERITY_MARKS
from stepscope.app.present.where import where
from stepscope.app.printable import plain

_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ERROR = SEVERITY_MARKS[Severity.ERROR]
SHOWN = 3  # findings printed per rule unless all are asked for


def format_result(
    result: CheckResult, start_ns: int = 0, *, show_all: bool = False, unmet: Sequence[str] = ()
) -> str:
    """Return the findings of one trace as text, with times from `start_ns` on.

    `unmet` are the required rules that could not judge it, which come before all findings.
    """
    lines = [f"{plain(result.trace)}: {summed(result)}", result.coverage.share]
    lines += [f"{_ERROR.glyph} {code} {unmet_line(code, result)}" for code in unmet]
    by_rule: dict[str, list[Finding]] = {}
    for finding in result.findings:
        by_rule.setdefault(finding.code, []).append(finding)
    for findings in by_rule.values():
        lines += ["", *_rule_lines(findings, start_ns, show_all)]
    timeless = [code for code in result.not_applicable if CLOCK in result.lacking[code]]
    others = [code for code in result.not_applicable if code not in timeless]
    if result.not_applicable:
        lines.append("")
    if others:
        lines.append(f"not applicable (not recorded): {', '.join(others)}")
    if timeless:
        lines.append(
            "not applicable (the trace has no clock, and they compare durations or rates): "
            f"{', '.join(timeless)}"
        )
    return "\n".join(lines)


def format_summary(results: Sequence[CheckResult]) -> str:
    """Return one line for all traces together."""
    return f"{len(results)} traces: {summed(*results)}"


def summed(*results: CheckResult) -> str:
    """Return what checks came to in a few words: first that one of them looked at nothing."""
    findings = [finding for result in results for finding in result.findings]
    blind = [said for result in results if (said := result.coverage.verdict)]
    if not blind:
        return tally(findings)
    first = blind[0] if len(results) == 1 else f"in {len(blind):,}, {BLIND}"
    return "  ".join([f"{NOT_APPLICABLE} {first}", *([tally(findings)] if findings else [])])


def unmet_line(code: str, result: CheckResult) -> str:
    """Return why a required rule could not judge."""
    return f"is required, and not applicable: {lacks(code, result)}"


def lacks(code: str, result: CheckResult) -> str:
    """Return what keeps a rule from judging: `the trace lacks steps.dur_ns, batch_rows`."""
    absent = ", ".join("a clock" if each == CLOCK else each for each in result.lacking[code])
    return f"it applies {absent}" if absent.startswith(ONLY_WHERE) else f"the trace lacks {absent}"


def tally(findings: Iterable[Finding]) -> str:
    """Return how many findings there are of each severity, in words."""
    counts: Counter[Severity] = Counter()
    for finding in findings:
        counts[finding.severity] += finding.count
    parts = [
        f"{SEVERITY_MARKS[severity].glyph} {times(counts[severity], word)}"
        for severity, word in _WORDS.items()
        if counts[severity]
    ]
    return "  ".join(parts) or "nothing found"


def _rule_lines(findings: list[Finding], start_ns: int, show_all: bool) -> list[str]:
    first = findings[0]
    total = sum(finding.count for finding in findings)
    shown = findings if show_all else findings[:SHOWN]
    lines = [f"{SEVERITY_MARKS[first.severity].glyph} {first.code} {first.name}  ×{total:,}"]
    for finding in shown:
        lines += [f"    {where(finding, start_ns)}", f"        {plain(finding.message)}"]
    left = total - sum(finding.count for finding in shown)
    if left:
        lines.append(f"    and {left:,} more (--all shows them)")
    return [*lines, f"    fix: {plain(first.fix)}"]
