"""Run rules over a trace: findings ranked, and what could not be judged said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import msgspec
import polars as pl

from stepscope.analyzers.check.coverage import UNFAILING, Coverage, recorded
from stepscope.analyzers.check.registry import RULES, usable_rules
from stepscope.analyzers.findings.finding import Finding, by_severity_then_time
from stepscope.analyzers.findings.rule import Rule, lacking
from stepscope.analyzers.views.once import sharing
from stepscope.analyzers.views.partial import missing_as_of, with_whole_rows
from stepscope.ingest.entry_points import tell_once
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

Progress = Callable[[str, int, int | None], None]

_Apply = Callable[[Rule, Trace], tuple[list[Finding], tuple[str, ...]]]

MOST_IN_MEMORY = 500_000
"""Rows of all tables; so many are read once for all rules, which then take half the time."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check of one trace came to.

    `findings` are ranked: severity, then time. `counts` has every rule that could be applied and
    the number of its occurrences (0 is *clean*), `lacking` the others with what the trace lacks of
    what they need: tables, or what they ask for besides. `tables` are those that have a row.
    """

    trace: str
    findings: tuple[Finding, ...]
    lacking: Mapping[str, tuple[str, ...]]
    counts: dict[str, int]
    tables: tuple[str, ...]

    @property
    def not_applicable(self) -> tuple[str, ...]:
        """The rules that could not judge: of them, finding nothing is not *clean*."""
        return tuple(self.lacking)

    @property
    def coverage(self) -> Coverage:
        """How much of the check could judge."""
        return Coverage(tuple(self.counts), self.lacking, self.tables)

    def keeping(self, findings: Iterable[Finding]) -> CheckResult:
        """The same with some of the findings, counted anew."""
        kept = tuple(findings)
        counts = dict.fromkeys(self.counts, 0)
        for finding in kept:
            counts[finding.code] += finding.count
        return replace(self, findings=kept, counts=counts)

    def as_dict(self) -> dict[str, Any]:
        """The result as `check --format json` prints it; `"unjudged"` is why nothing was found."""
        coverage = self.coverage
        return {
            "trace": self.trace,
            "unjudged": coverage.verdict,
            "coverage": coverage.share,
            "findings": [finding.as_dict() for finding in self.findings],
            "not_applicable": {code: list(needs) for code, needs in self.lacking.items()},
            "counts": dict(self.counts),
        }


def check(
    trace: Trace, rules: Sequence[Rule] | None = None, progress: Progress | None = None
) -> CheckResult:
    """Apply `rules`, by default all that can be used, to `trace`.

    `progress` is told a rule's code, how many are done, of how many.
    Rules of one family share what they make of the trace, which takes memory until they are done.
    Raises StepscopeError, naming the rule, when a rule itself fails. Of all rules, one of another
    package that fails is told on stderr, and not applicable.
    """
    apply = _apply if rules is not None else _apply_alone
    rules = usable_rules() if rules is None else rules
    whole = with_whole_rows(trace)
    with _at_hand(whole) as held:
        missing_as_of(held, whole)
        findings, absent, counts = _apply_all(rules, held, apply, progress)
    ranked = tuple(sorted(findings, key=by_severity_then_time))
    return CheckResult(trace.name, ranked, absent, counts, recorded(trace))


@contextmanager
def _at_hand(trace: Trace) -> Iterator[Trace]:
    """Give rules the trace as they answer soonest: hundreds of questions, few rows each."""
    if sum(trace.rows_by_table().values()) > MOST_IN_MEMORY:
        yield trace
        return
    with pl.Config(engine_affinity="in-memory"):
        yield trace.in_memory()


def _apply_all(
    rules: Sequence[Rule], trace: Trace, apply: _Apply, progress: Progress | None
) -> tuple[list[Finding], dict[str, tuple[str, ...]], dict[str, int]]:
    """What all rules find, what those lack that cannot judge, and how often each that can fired."""
    findings: list[Finding] = []
    absent: dict[str, tuple[str, ...]] = {}
    counts: dict[str, int] = {}
    for _, family in groupby(enumerate(rules), _family):
        with sharing():
            for done, rule in family:
                if progress:
                    progress(rule.code, done, len(rules))
                found, lacks = apply(rule, trace)
                if lacks:
                    absent[rule.code] = lacks
                    continue
                findings += found
                counts[rule.code] = sum(finding.count for finding in found)
    return findings, absent, counts


def _family(numbered: tuple[int, Rule]) -> str:
    return numbered[1].code[:3]


def _apply_alone(rule: Rule, trace: Trace) -> tuple[list[Finding], tuple[str, ...]]:
    """The same, and what fails of another package's rule is that rule's alone."""
    try:
        return _apply(rule, trace)
    except StepscopeError as error:
        if rule in RULES:
            raise
        tell_once(str(error))
        return [], (UNFAILING,)


def _apply(rule: Rule, trace: Trace) -> tuple[list[Finding], tuple[str, ...]]:
    """Return what the rule finds, and what it lacks where it is not applicable."""
    try:
        lacks = lacking(rule, trace)
        return ([] if lacks else _found(rule, trace)), lacks
    except (StepscopeError, pl.exceptions.ComputeError):
        # The latter is a damaged file, which no rule can help.
        raise
    except (Exception, SystemExit) as error:
        what = f"rule {rule.code} failed: {type(error).__name__}: {error}".splitlines()[0]
        todo = f"skip it with --ignore {rule.code}, and report this as a bug"
        raise StepscopeError(what, where=trace.name, todo=todo) from error


msgspec.json.Decoder(Finding)
# Makes the type known: two threads that are the first to convert one crash msgspec 0.22.


def _found(rule: Rule, trace: Trace) -> list[Finding]:
    """What a rule finds, held against what a finding is: rules are other people's code, too."""
    found = list(rule.check(trace))
    for each in found:
        if msgspec.convert(each.as_dict(), Finding).code != rule.code:
            raise ValueError(f"it found {each.code}, which is another rule's")
    return found
