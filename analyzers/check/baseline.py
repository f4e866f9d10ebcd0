"""A baseline: the findings that a project knows of, so that only what is new fails.

A finding is known while the baseline has as many of its fingerprint. One that names its subject
counts as one, however often it occurred; of those that name none, the occurrences are counted.
Traces are told apart by name; a baseline of one trace serves any one trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

import msgspec

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.fingerprint import fingerprint, subject
from stepscope.ingest.errors import ConfigError

VERSION = 1


class Known(msgspec.Struct, frozen=True):
    """Findings of one fingerprint; `code` and `subject` are there for people to read."""

    fingerprint: str
    code: str
    subject: str
    count: int


class Baseline(msgspec.Struct, frozen=True):
    """The known findings of each trace, by the trace's name."""

    stepscope_baseline: int
    traces: dict[str, list[Known]]

    def of(self, name: str) -> Counter[str]:
        """How many findings of each fingerprint are known of the trace of that name."""
        known = self.traces.get(name, ())
        return Counter({each.fingerprint: each.count for each in known})


def baseline_of(results: Iterable[CheckResult]) -> Baseline:
    """The baseline in which all these findings are known."""
    traces: dict[str, dict[str, Known]] = {}
    for result in results:
        known = traces.setdefault(name_of(result), {})
        for finding in result.findings:
            key = fingerprint(finding)
            before = known[key].count if key in known else 0
            about = " ".join(f"{kind} {value}" for kind, value in subject(finding)) or "whole run"
            known[key] = Known(key, finding.code, about, before + _weight(finding))
    ordered = {name: sorted(known.values(), key=_order) for name, known in traces.items()}
    return Baseline(VERSION, ordered)


def new_findings(results: Sequence[CheckResult], baseline: Baseline) -> list[CheckResult]:
    """The results without what the baseline knows; of too many alike, the first are the known."""
    (only,) = baseline.traces if len(baseline.traces) == 1 == len(results) else ("",)
    names = [only or name_of(result) for result in results]
    left = {name: baseline.of(name) for name in names}
    return [_new(result, left[name]) for result, name in zip(results, names, strict=True)]


def load_baseline(file: Path) -> Baseline:
    """Read a baseline; raises ConfigError where there is none, or something else."""
    try:
        baseline = msgspec.json.decode(file.read_bytes(), type=Baseline)
    except FileNotFoundError:
        todo = "write it with --update-baseline"
        raise ConfigError("the baseline file does not exist", where=str(file), todo=todo) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"not a baseline: {error}", where=str(file)) from None
    if baseline.stepscope_baseline != VERSION:
        what = f"a baseline of version {baseline.stepscope_baseline}, not {VERSION}"
        raise ConfigError(what, where=str(file), todo="write it again with --update-baseline")
    return baseline


def save_baseline(baseline: Baseline, file: Path) -> None:
    """Write a baseline, a line for each finding, so that changes of it can be read and merged."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n")


def name_of(result: CheckResult) -> str:
    """The name of a result's trace, without the folders around it and what cannot be encoded."""
    return PurePath(result.trace).name.encode(errors="replace").decode()


def _new(result: CheckResult, left: Counter[str]) -> CheckResult:
    return result.keeping(finding for finding in result.findings if not _is_known(finding, left))


def _is_known(finding: Finding, left: Counter[str]) -> bool:
    key = fingerprint(finding)
    left[key] -= _weight(finding)
    return left[key] >= 0


def _weight(finding: Finding) -> int:
    return 1 if subject(finding) else finding.count


def _order(known: Known) -> tuple[str, str, str]:
    return known.code, known.subject, known.fingerprint
