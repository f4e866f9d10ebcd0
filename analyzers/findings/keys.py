"""What a finding goes by: `COR001.2` is the second of its code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stepscope.analyzers.findings.finding import Finding


def finding_keys(findings: Iterable[Finding]) -> list[str]:
    """A key for each finding, in their order."""
    seen: Counter[str] = Counter()
    keys = []
    for finding in findings:
        seen[finding.code] += 1
        keys.append(f"{finding.code}.{seen[finding.code]}")
    return keys
