"""The formats in which `check` writes findings: one file each, one line in `FORMATS`.

A format is imported when it is asked for: who reads text does not pay for XML.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from stepscope.analyzers.check.run import CheckResult
    from stepscope.analyzers.findings.finding import Finding

_WEIGHTS = {"error": 2, "warning": 1, "info": 0}


@dataclass(frozen=True, slots=True)
class Checked:
    """A trace's findings; its times count from `start_ns`.

    `num_known` findings are in the baseline and left out; None where there is no baseline. So are
    `num_usual`, of rules that found as much in the runs before a change.
    `unmet` are the rules that are required to judge the trace, and could not.
    """

    result: CheckResult
    start_ns: int = 0
    num_known: int | None = None
    num_usual: int | None = None
    unmet: tuple[str, ...] = ()


class Unread(NamedTuple):
    """A trace that could not be read, and why, in a line that names it."""

    trace: str
    said: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a format is asked for: everything or the worst, and from which severity on it fails.

    `unread` are the traces beside those that were checked: a document for programs names them.
    """

    show_all: bool = False
    fail_on: str = "error"
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text for stdout or a file, and notes on what it leaves out, for stderr."""

    text: str
    notes: tuple[str, ...] = ()


class Format(Protocol):
    """A module that writes findings; names and messages from a trace are hostile to it."""

    def render(self, checked: Sequence[Checked], asked: Asked, /) -> Rendered:
        """Write the findings of all traces."""
        ...


FORMATS = {"text": "as_text", "json": "as_json", "sarif": "as_sarif", "junit": "as_junit",
           "github": "as_github"}  # fmt: skip


def format_named(name: str) -> Format:
    """The format of that name, which is one of FORMATS."""
    return cast(Format, importlib.import_module(f"stepscope.app.formats.{FORMATS[name]}"))


def failing(findings: Iterable[Finding], fail_on: str) -> list[Finding]:
    """The findings that are at or above a severity; `never` is above all."""
    if fail_on == "never":
        return []
    return [each for each in findings if _WEIGHTS[each.severity] >= _WEIGHTS[fail_on]]


def with_unmet(checked: Checked, required: Iterable[str]) -> Checked:
    """The same with what could not judge of the rules that are `required` to."""
    unmet = tuple(code for code in required if code in checked.result.lacking)
    return replace(checked, unmet=unmet)


def left_out(checked: Checked) -> list[str]:
    """What is said of findings that are left out, of each kind."""
    said = {"in the baseline": checked.num_known, "as often as before": checked.num_usual}
    return [f"{why}, and left out: {number:,}" for why, number in said.items() if number]


def exit_code(checked: Sequence[Checked], fail_on: str) -> int:
    """What a check exits with: 0 only where every trace was judged, and nothing failed.

    3 where a trace has no row; else 1 where a finding fails or a required rule could not judge;
    else 3 where no rule could judge what ran in a trace, unless nothing is to fail.
    """
    if any(each.result.coverage.is_unread for each in checked):
        return 3
    if any(each.unmet or failing(each.result.findings, fail_on) for each in checked):
        return 1
    is_blind = any(each.result.coverage.is_blind for each in checked)
    return 3 if is_blind and fail_on != "never" else 0


def add_to_job_summary(text: str) -> None:
    """Show Markdown on the page of a job, where a command runs in one of GitHub's."""
    if file := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(file).open("a", encoding="utf-8", errors="replace") as summary:
            summary.write(text)


def ranked(checked: Sequence[Checked]) -> list[tuple[Checked, Finding]]:
    """All findings with the trace they are in, the worst first; else in the order of the traces."""
    found = [(each, finding) for each in checked for finding in each.result.findings]
    return sorted(found, key=lambda pair: -_WEIGHTS[pair[1].severity])


def clip(text: str, most: int) -> str:
    """`text`, cut to `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
