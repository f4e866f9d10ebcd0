"""Metrics of findings: how often each rule found something, by its severity.

A rule that could judge and found nothing has the number 0. One that could not has none: of it,
nothing is known.
"""

from __future__ import annotations

from collections import Counter

from stepscope.analyzers.check.run import CheckResult
from stepscope.app.otel.laid_out import LaidOut
from stepscope.app.otel.telemetry import Gauge, Point
from stepscope.ingest.readers.otlp import names

FOUND = f"{names.PREFIX}findings"
NOT_JUDGED = f"{names.PREFIX}rules_not_applicable"
RULE, SEVERITY = f"{names.PREFIX}rule", f"{names.PREFIX}severity"


def gauges_of(checked: CheckResult, laid: LaidOut) -> tuple[Gauge, ...]:
    """The metrics of a check, all at the end of the trace.

    A rule that found something has a number for each severity that it found; others have one
    without a severity.
    """
    at_ns = laid.unix_ns(laid.ends_ns)
    found: Counter[tuple[str, str]] = Counter()
    for finding in checked.findings:
        found[finding.code, str(finding.severity)] += finding.count
    fired = {code for code, _ in found}
    points = [
        Point({RULE: code, SEVERITY: severity}, at_ns, number)
        for (code, severity), number in sorted(found.items())
    ]
    points += [Point({RULE: code}, at_ns, 0) for code in sorted(checked.counts.keys() - fired)]
    return (
        Gauge(FOUND, "How often a rule found something; 0 where it could judge and found nothing",
              "{finding}", tuple(points)),
        Gauge(NOT_JUDGED, "Rules that could not judge: of them nothing is known", "{rule}",
              (Point({}, at_ns, len(checked.not_applicable)),)),
    )  # fmt: skip
