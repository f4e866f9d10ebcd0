"""What a rule is: a frozen dataclass of thresholds, and a pure function from trace to findings.

A rule lives in a file of its own under `rules/`. The file's docstring is its page (`explain`),
its dataclass fields are its thresholds, and `check` works in Polars expressions: joins, sorts and
windows over whole columns. Only the few findings become Python objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.views.known import CLOCK, knows
from stepscope.analyzers.views.partial import identifying
from stepscope.ingest.trace import Trace

CONDITION, ONLY_WHERE = "Tell whether ", "only where "
"""How the docstring of every `applies` begins, and how the same is told to who asks why not."""

PLACE = ("rank", "step", "ts_ns", "end_ns", "request", "task", "core", "group")


class Rule(Protocol):
    """One kind of fault; `needs` is that without which it answers *not applicable*.

    That is a table, a `table.column` that has to have a value in some row, or `CLOCK` if it
    compares durations or rates.

    A rule that needs more than tables to judge is `Particular` too.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    needs: ClassVar[tuple[str, ...]]

    def check(self, trace: Trace) -> list[Finding]:
        """Find the fault in a trace that the rule is applicable to."""
        ...


@runtime_checkable
class Particular(Protocol):
    """What a rule adds that is not applicable to every trace with what it needs.

    It needs a size that the manifest declares, say, tables of which no row is missing, or one of
    several columns.
    """

    def applies(self, trace: Trace) -> bool:
        """Tell whether there is what `check` needs, in a trace that has all of `needs`.

        The docstring begins with CONDITION; what follows is told where the rule does not apply.
        """
        ...


def is_applicable(rule: Rule, trace: Trace) -> bool:
    """Tell whether `rule` can judge `trace`: where it cannot, finding nothing is not *clean*."""
    return not lacking(rule, trace)


def lacking(rule: Rule, trace: Trace) -> tuple[str, ...]:
    """What keeps `rule` from judging `trace`, nothing where it can.

    These are the tables and `table.column`s of its needs that the trace lacks, and required columns
    without any value in recorded tables. If nothing is missing and the rule still does not apply,
    it is the condition, in the words of `applies`.
    """
    absent = tuple(need for need in rule.needs if not knows(trace, need))
    if not absent and trace.manifest.is_recording:
        absent = tuple(need for need in _required(rule) if not knows(trace, need))
    if absent or not isinstance(rule, Particular) or rule.applies(trace):
        return absent
    return (condition(rule),)


def _required(rule: Rule) -> list[str]:
    """The identifying columns of the tables that a rule needs."""
    tables = dict.fromkeys(need.partition(".")[0] for need in rule.needs if need != CLOCK)
    return [f"{name}.{column}" for name in tables for column in identifying(name)]


def condition(rule: Particular) -> str:
    """When a rule applies beside its needs: `only where ...`, as its `applies` says it."""
    said, _, _ = inspect.cleandoc(rule.applies.__doc__ or "").partition("\n\n")
    return f"{ONLY_WHERE}{' '.join(said.split()).removeprefix(CONDITION).removesuffix('.')}"


def finding(
    rule: Rule,
    message: str,
    fix: str,
    *,
    at: Mapping[str, Any] | None = None,
    evidence: Evidence | None = None,
    count: int = 1,
) -> Finding:
    """A finding of `rule`, placed by those entries of the row `at` that say where.

    Evidence that is not known, None, is left out.
    """
    place = {key: at[key] for key in PLACE if key in at} if at else {}
    if isinstance(place.get("group"), str):
        del place["group"]  # of processes, not of cores
    known: Evidence = {key: value for key, value in (evidence or {}).items() if value is not None}
    return Finding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        message=message,
        fix=fix,
        evidence=known,
        count=count,
        **place,
    )


def each(
    rule: Rule,
    occurrences: pl.DataFrame,
    one: Callable[[Mapping[str, Any]], Finding],
    fix: str,
    limit: int,
) -> list[Finding]:
    """A finding for each of the first `limit` rows, and one last finding that counts the rest.

    Rows have at least `ts_ns` and `end_ns`; a column `count` says how often each occurred.
    """
    findings = [one(row) for row in occurrences.head(limit).iter_rows(named=True)]
    rest = occurrences.slice(limit)
    if rest.is_empty():
        return findings
    count = int(rest["count"].sum()) if "count" in rest.columns else rest.height
    place = {"ts_ns": rest["ts_ns"].min(), "end_ns": rest["end_ns"].max()}
    message = f"{count:,} more, not listed one by one"
    more: Evidence = {"listed": limit, "more": count}
    return [*findings, finding(rule, message, fix, at=place, evidence=more, count=count)]
