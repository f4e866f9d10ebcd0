"""What stepscope offers to Python: record a run, open a trace, check it.

    from stepscope import Recorder, Trace, check

    with Recorder("run.trace", producer="my-engine") as recorder:
        recorder.steps(step=0, ts_ns=0, dur_ns=900, kind="decode")

    for finding in check(Trace.open("run.trace")).findings:
        print(finding.severity, finding.code, finding.message)

A name is imported when it is first asked for: a server that records loads neither Polars nor a
rule. What is not named here may change with every version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.analyzers.check.run import CheckResult, check
    from stepscope.analyzers.findings.finding import Finding, Severity
    from stepscope.analyzers.findings.rule import Rule
    from stepscope.app.pytest_plugin import assert_clean
    from stepscope.ingest.errors import StepscopeError
    from stepscope.ingest.merging.trace_handler import trace_handler
    from stepscope.ingest.recorder import Recorder
    from stepscope.ingest.recording.lasting import BatchRow
    from stepscope.ingest.recording.starts import new_start
    from stepscope.ingest.trace import Trace

_HOMES = {
    "Recorder": "ingest.recorder",
    "BatchRow": "ingest.recording.lasting",
    "new_start": "ingest.recording.starts",
    "Trace": "ingest.trace",
    "check": "analyzers.check.run",
    "CheckResult": "analyzers.check.run",
    "Finding": "analyzers.findings.finding",
    "Severity": "analyzers.findings.finding",
    "Rule": "analyzers.findings.rule",
    "assert_clean": "app.pytest_plugin",
    "StepscopeError": "ingest.errors",
    "trace_handler": "ingest.merging.trace_handler",
}
__all__ = [
    "BatchRow",
    "CheckResult",
    "Finding",
    "Recorder",
    "Rule",
    "Severity",
    "StepscopeError",
    "Trace",
    "assert_clean",
    "check",
    "new_start",
    "trace_handler",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that is offered

    def __getattr__(name: str) -> object:
        """Import a name from where it is defined, when it is first asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*(name for name in globals() if name.startswith("__")), *__all__]
