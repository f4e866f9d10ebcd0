"""Findings as text: ranked, grouped by rule, a few of each, with what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from stepscope.analyzers.finding import Finding, Severity
from stepscope.analyzers.run import CheckResult
from stepscope.app.palette import SEVERITY_MARKS
from stepscope.app.plain import plain

_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
SHOWN = 3  # findings printed per rule unless all are asked for


def format_result(result: CheckResult, start_ns: int = 0, *, show_all: bool = False) -> str:
    """Return the findings of one trace as text, with times from `start_ns` on."""
    lines = [f"{plain(result.trace)}: {tally(result.findings)}"]
    by_rule: dict[str, list[Finding]] = {}
    for finding in result.findings:
        by_rule.setdefault(finding.code, []).append(finding)
    for findings in by_rule.values():
        lines += ["", *_rule_lines(findings, start_ns, show_all)]
    if result.not_applicable:
        lines += ["", f"not applicable (not recorded): {', '.join(result.not_applicable)}"]
    return "\n".join(lines)


def format_summary(results: Sequence[CheckResult]) -> str:
    """Return one line for all traces together."""
    findings = [finding for result in results for finding in result.findings]
    return f"{len(results)} traces: {tally(findings)}"


def tally(findings: Iterable[Finding]) -> str:
    """Return how many findings there are of each severity, in words."""
    counts: Counter[Severity] = Counter()
    for finding in findings:
        counts[finding.severity] += finding.count
    parts = [
        f"{SEVERITY_MARKS[severity].glyph} {counts[severity]:,} {_plural(word, counts[severity])}"
        for severity, word in _WORDS.items()
        if counts[severity]
    ]
    return "  ".join(parts) or "nothing found"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def where(finding: Finding, start_ns: int = 0) -> str:
    """Return where a finding is, as short as it can be said: `group 2 · step 3 · 8.214 ms`."""
    parts = [
        f"rank {finding.rank}" if finding.rank else "",
        f"request {finding.request}" if finding.request is not None else "",
        f"group {finding.group}" if finding.group is not None else "",
        f"core {finding.core}" if finding.core is not None else "",
        f"step {finding.step}" if finding.step is not None else "",
        f"{(finding.ts_ns - start_ns) / 1e6:,.3f} ms" if finding.ts_ns is not None else "",
    ]
    return plain(" · ".join(part for part in parts if part)) or "whole run"


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
