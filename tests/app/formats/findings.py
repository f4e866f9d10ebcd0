"""Findings for tests of formats, made by hand."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.formats import Asked, Checked

CONFLICT = Finding(
    code="COR001",
    name="mix-on-occupied-group",
    severity=Severity.ERROR,
    message="qk_pv 7/8 took the AIC of group 2",
    fix="admit a MIX only when the whole group is free",
    rank=0,
    step=3,
    ts_ns=8_214_000,
    end_ns=8_217_000,
    task=7,
    group=2,
    core=6,
    evidence={"block": "qk_pv 7/8", "held_idle_ns": 3_000},
)
WASTE = replace(
    CONFLICT, code="KVB003", name="preempted-with-room", severity=Severity.WARNING, count=4,
    request="req-00", task=None, group=None, core=None, message="4 preemptions with room",
)  # fmt: skip
NOTE = replace(WASTE, code="TRC003", name="inferred", severity=Severity.INFO, request=None)

LACKING = {"STV001": ("lifecycle.request",)}

# Ends a line, a command, a cell, an element, a placeholder; begins others; steers terminals.
HOSTILE = (
    "a\nb\r\n::error::owned %0A ##[error]x | `c` <b>&amp;\u202e\x1b[31m ]]> [x](https://e.example) "
    "{0} \\ \ufffe\uffff \x00 @all **d** www.e.example"
)


def checked(*findings: Finding, trace: str = "mix.trace", num_known: int | None = None) -> Checked:
    """The findings of a trace that COR001, KVB003 and TRC003 were applied to, and STV001 not."""
    counts = {"COR001": 0, "KVB003": 0, "TRC003": 0}
    for finding in findings:
        counts[finding.code] += finding.count
    return Checked(
        CheckResult(trace, findings, LACKING, counts, ("core_spans",)), 214_000, num_known
    )


def many(number: int) -> list[Finding]:
    """Findings of every severity in turn, each about a request of its own."""
    kinds = (NOTE, CONFLICT, WASTE)
    return [replace(kinds[n % 3], request=f"req-{n}", task=None, group=None) for n in range(number)]


ASKED = Asked()
