"""Every figure that commands and screens print of a trace, by name, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.analyzers.many_runs.trace_row import trace_row
from stepscope.analyzers.many_runs.window_rows import window_rows
from stepscope.analyzers.summary.slo import judged, slo_of
from stepscope.app.cli.commands.blame import as_dict as blame_as_dict
from stepscope.app.cli.commands.blame import in_order
from stepscope.app.cli.commands.info import as_dict as info_as_dict
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.debugger.why_anywhere import rank_that_has, why_anywhere
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.facets.look import Look
from stepscope.app.debug.shown.why_blocks import why_blocks
from stepscope.app.debug.why.last_wait import last_wait
from stepscope.app.present.blocks import Block, Fact, Heading, Items, Paragraph, Table
from stepscope.app.present.summary.summing import summary
from stepscope.app.replay.compared import compared
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

SLO = "ttft=500ms,tpot=50ms,latency=2s"
NO_FIGURES = {
    "blame": ("causes", "notes"),
    "summary": ("findings", "not_applicable", "config", "rules_judged", "errors", "warnings",
                "partial"),
    "info": ("coverage", "config", "report", "workload", "partial"),
    "diff": ("knew", "not_compared", "partial", "findings", "coverage"),
    "why": ("asked_at", "at", "first_line", "links", "partial"),
}  # fmt: skip
"""What a command prints that is no figure: names, settings, sentences, and what `check` says."""
WHERE = ("50%", "end")
FEW = 5


@dataclass
class Figures:
    """`values` by their names, which begin with the command's; `said` are sentences by command."""

    values: dict[str, Any] = field(default_factory=dict)
    said: dict[str, set[str]] = field(default_factory=dict)

    def add(self, command: str, told: Any, said: Iterable[str] = ()) -> None:
        """Add what a command prints as a program reads it."""
        self.values |= dict(_flat(_without(told, NO_FIGURES.get(command, ())), command))
        self.said.setdefault(command, set()).update(said)


def figures(trace: Trace, full: Trace, subjects: Iterable[str] = ()) -> Figures:
    """Return all figures of a trace; it is compared with `full`, and asked why `subjects` wait."""
    found = Figures()
    result, blamed = check(trace), blame(trace)
    found.add("check", {**result.counts, **dict.fromkeys(result.not_applicable)})
    for add in (_blame, _summary, _overview):
        add(found, trace, blamed, result)
    told = info_as_dict(trace)
    found.add("info", told, told["partial"])
    both = compared((full, trace), rules=False, report=lambda *_told: None).as_dict()
    by_name = {str(row["request"]): row for row in both["requests"]}
    lacking = {*both["not_compared"], *both["partial"]["b"]}
    found.add("diff", both | {"requests": by_name}, lacking)
    for subject in subjects:
        _asked(partial(_why, found, trace, subject))
    _asked(partial(_state, found, trace))
    return found


def _asked(ask: Callable[[], None]) -> None:
    """Ask what may be refused in a line: there is no such request, or no such step."""
    try:
        ask()
    except StepscopeError:
        return


def _blame(found: Figures, trace: Trace, blamed: Blame, _result: CheckResult) -> None:
    shown = in_order(blamed, "latency_ns")
    told = blame_as_dict(blamed, shown, judged(trace, blamed, slo_of(SLO)))
    by_name = {str(row["request"]): row for row in told["requests"]}
    slo = told["slo"]
    slo = slo | {"requests": {str(row["request"]): row for row in slo["requests"]}}
    found.add("blame", told | {"requests": by_name, "slo": slo}, told["notes"])


def _summary(found: Figures, trace: Trace, _blamed: Blame, result: CheckResult) -> None:
    slo = (SLO, slo_of(SLO))
    row = trace_row(trace, "t", result, slo)
    said = (row["partial"] or "").split("; ")
    found.add("summary", row, filter(None, said))

    def windows() -> None:
        for each in window_rows(trace, row, 20, slo[1]):
            figures = _without(each, NO_FIGURES["summary"])
            found.add("window", {each["window"]: figures}, filter(None, said))

    _asked(windows)


def _overview(found: Figures, trace: Trace, blamed: Blame, _result: CheckResult) -> None:
    blocks = summary(trace, blamed, slo_of(SLO)).blocks
    found.add("overview", dict(_of_blocks(blocks)), _said(blocks))


def _of_blocks(blocks: Iterable[Block]) -> Iterator[tuple[str, Any]]:
    part = ""
    for block in blocks:
        if isinstance(block, Heading):
            part = block.text
        elif isinstance(block, Fact):
            yield f"{part}, {block.label}", " → ".join(block.values)
        elif isinstance(block, Table):
            for row in block.rows:
                for column, value in zip(block.columns[1:], row[1:], strict=True):
                    yield f"{part}, {block.title}, {row[0]}, {column}", value


def _said(blocks: Iterable[Block]) -> Iterator[str]:
    part = ""
    for block in blocks:
        if isinstance(block, Heading):
            part = block.text
        elif isinstance(block, Paragraph):
            yield block.text
        elif isinstance(block, Items) and part == "partial":
            yield from block.lines


def _why(found: Figures, trace: Trace, subject: str) -> None:
    debugger = Debugger(trace, None)
    own = debugger.session_of(rank_that_has(debugger.session, subject))
    chain = why_anywhere(debugger.session, subject, last_wait(own, subject), debugger.session_of)
    told = chain.as_dict()
    found.add("why", {subject: {"root": {"ends": told["root"]["ends"]}}}, ())
    found.said["why"] |= {*told["partial"]}
    assert list(why_blocks(chain))


def _state(found: Figures, trace: Trace) -> None:
    debugger = Debugger(trace, None)
    for where in WHERE:
        debugger.goto(where)
        look = Look.of(debugger)
        for facet in FACETS:
            rows = facet.at(look)
            found.add("state", {where: {facet.name: None if rows is None else len(rows)}})


def _without(told: Any, names: Iterable[str]) -> Any:
    if not isinstance(told, Mapping):
        return told
    return {name: value for name, value in told.items() if name not in names}


def _flat(told: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(told, Mapping):
        for key, value in told.items():
            yield from _flat(value, f"{name}.{key}")
    elif isinstance(told, list | tuple):
        for at, value in enumerate(told):
            yield from _flat(value, f"{name}[{at}]")
    else:
        yield name, told
