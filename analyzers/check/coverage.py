"""How much of a check could judge at all, and what would have to be recorded for the rest.

A check that finds nothing is worth what its rules could look at. Rules of the recording itself say
nothing of what ran: where no other rule could judge, that comes before everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.analyzers.check.registry import RULES, usable_rules
from stepscope.analyzers.findings.rule import ONLY_WHERE, Rule, lacking
from stepscope.analyzers.views.known import CLOCK
from stepscope.analyzers.views.partial import with_whole_rows
from stepscope.ingest.entry_points import said, tell_once
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

OF_THE_RECORDING = frozenset({"TRC001", "TRC002", "TRC003"})
"""Whether it was closed, whether its times can be, what was inferred: asked of any trace."""

OF_CORES = frozenset({"tasks", "core_spans", "task_edges"})
UNREAD = "nothing was read: no table has a row"
UNFAILING = "only where it does not fail"
BLIND = "no rule could judge what ran"
MOST_TOLD = 3  # tables: what to record first is soon said


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which rules could judge a trace: codes of `judged`, and of others what is `lacking`.

    `tables` are the names of those that have a row.
    """

    judged: tuple[str, ...]
    lacking: Mapping[str, tuple[str, ...]]
    tables: tuple[str, ...]

    @property
    def is_unread(self) -> bool:
        """Tell whether the trace has no row at all."""
        return not self.tables

    @property
    def is_blind(self) -> bool:
        """Tell whether no rule could judge what ran, of those that were to do so.

        Who asks for rules of the recording alone is answered by these.
        """
        asked = {*self.judged, *self.lacking}
        wanted = asked - OF_THE_RECORDING or asked
        return self.is_unread or wanted.isdisjoint(self.judged)

    @property
    def verdict(self) -> str | None:
        """Why finding nothing says nothing, None where it says something."""
        if self.is_unread:
            return UNREAD
        return BLIND if self.is_blind else None

    @property
    def without_findings(self) -> str:
        """The sentence in place of findings where there are none."""
        said = self.verdict or "nothing was found"
        return f"{said[0].upper()}{said[1:]}: {self.share}."

    @property
    def share(self) -> str:
        """One line: how many rules could judge, and what to record so that more can."""
        alone = " (its recording alone)" if self.is_blind and self.judged else ""
        asked = len(self.judged) + len(self.lacking)
        said = f"{len(self.judged):,} of {asked:,} {_rules(asked)} could judge{alone}"
        timeless = sum(CLOCK in needs for needs in self.lacking.values())
        if timeless:
            said = f"{said}; {timeless:,} compare durations, and the trace has no clock"
        steps = list(self._worth_recording())
        if not steps:
            return said
        (first, number), *later = steps[:MOST_TOLD]
        then = "".join(f", {what} ({more:,})" for what, more in later)
        return f"{said}; record {first} for up to {number:,} more{', then' * bool(then)}{then[1:]}"

    def as_dict(self) -> dict[str, Any]:
        """The codes, what each of the others lacks, and the line."""
        absent = {code: list(needs) for code, needs in self.lacking.items()}
        return {"says": self.share, "judged": list(self.judged), "lacking": absent}

    def _worth_recording(self) -> Iterator[tuple[str, int]]:
        """Tables in the order in which they let most rules judge, as far as their needs go."""
        wanted = [_tables(needs) for needs in self.lacking.values() if CLOCK not in needs]
        left = [tables for tables in wanted if tables]
        had: frozenset[str] = frozenset()
        while left:
            more = max(left, key=lambda tables: _worth(left, had, tables))
            had |= more
            served = [tables for tables in left if tables <= had]
            new = [table.name for table in TABLES if table.name in more]
            yield " + ".join(map(self._named, new)), len(served)
            left = [tables - had for tables in left if not tables <= had]

    def _named(self, table: str) -> str:
        return f"more of {table}" if table in self.tables else table


def coverage(trace: Trace, rules: Sequence[Rule] | None = None) -> Coverage:
    """Ask rules, by default all that can be used, whether they can judge, without letting them."""
    asked = usable_rules() if rules is None else rules
    trace = with_whole_rows(trace)
    lacks = {rule.code: _lacks(rule, trace) for rule in asked}
    judged = tuple(code for code, needs in lacks.items() if not needs)
    absent = {code: lacks[code] for code in lacks if lacks[code]}
    return Coverage(judged, absent, recorded(trace))


def _lacks(rule: Rule, trace: Trace) -> tuple[str, ...]:
    """What a rule lacks; what fails of another package's rule is that rule's alone."""
    try:
        return lacking(rule, trace)
    except (Exception, SystemExit) as error:
        if rule in RULES:
            raise
        tell_once(f"{trace.name}: rule {rule.code} failed: {said(error)}")
        return (UNFAILING,)


def recorded(trace: Trace) -> tuple[str, ...]:
    """The names of the tables that have a row."""
    return tuple(table.name for table in TABLES if trace.has(table.name))


def _tables(needs: tuple[str, ...]) -> frozenset[str]:
    """The tables of what a rule lacks; what it asks for besides is in none."""
    return frozenset(need.partition(".")[0] for need in needs if not need.startswith(ONLY_WHERE))


def _worth(
    left: list[frozenset[str]], had: frozenset[str], tables: frozenset[str]
) -> tuple[bool, float, int]:
    """How soon to record `tables`: rules that they serve, for each table that it takes.

    Few engines run on core groups, so these come last.
    """
    served = sum(each <= had | tables for each in left)
    return tables.isdisjoint(OF_CORES), served / len(tables), -len(tables)


def _rules(number: int) -> str:
    return "rule" if number == 1 else "rules"
