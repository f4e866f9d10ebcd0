"""Findings as GitHub workflow commands, which become annotations, and as a job summary.

GitHub shows ten errors, ten warnings and ten notices of a step, so one stands for all findings of
a rule in a trace; the summary has every rule. Text from a trace can neither end a command nor begin
one, and in the summary it is neither Markdown nor HTML.

Source: GitHub, "Workflow commands for GitHub Actions"; the escapes are those of its own toolkit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stepscope.analyzers.check.coverage import BLIND
from stepscope.analyzers.findings.finding import Finding
from stepscope.app.formats import Asked, Checked, Rendered, clip, left_out, ranked
from stepscope.app.present.report_text import summed, unmet_line
from stepscope.app.present.where import where
from stepscope.app.printable import markdown_literal, plain

COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}
MOST_SHOWN = 10  # annotations of a severity that GitHub shows for a step
MOST_CHARS = 1_000
MOST_SUMMARY_BYTES = 1_000_000  # GitHub takes 1 MiB from a step, or nothing

Rows = list[tuple[Checked, Finding, int]]


def render(checked: Sequence[Checked], asked: Asked) -> Rendered:
    """An annotation for each rule that found something, the worst first, ten of a severity.

    Before these comes, as an error, what was not read or not judged.
    """
    unread = (f"::error title=not read::{as_value(each.said)}" for each in asked.unread)
    commands = [("error", command) for command in (*unread, *_not_judged(checked))]
    commands += [(each[1].severity, _command(*each)) for each in _by_rule(checked)]
    shown: Counter[str] = Counter()
    lines: list[str] = []
    for severity, command in commands:
        shown[severity] += 1
        if shown[severity] <= MOST_SHOWN:
            lines.append(command)
    left = len(commands) - len(lines)
    note = (f"{left:,} annotations left out: GitHub shows {MOST_SHOWN} of a severity",)
    return Rendered("\n".join(lines), note if left else ())


def job_summary(checked: Sequence[Checked], asked: Asked) -> str:
    """What `$GITHUB_STEP_SUMMARY` takes: a table of the rules that found something."""
    total = summed(*(each.result for each in checked))
    lines = ["### stepscope", "", markdown_literal(total), ""]
    lines += [f"- {markdown_literal(clip(plain(each.said), MOST_CHARS))}" for each in asked.unread]
    lines += [f"- {markdown_literal(said)}" for each in checked for said in _unmet(each)]
    rows = list(_table(checked))
    if rows:
        lines += ["| rule | found | trace | where | the worst or first | fix |",
                  "|---|---:|---|---|---|---|"]  # fmt: skip
    lines += [*_bounded(rows, "rows"), "", *_bounded([_remark(each) for each in checked], "traces")]
    return "\n".join(lines) + "\n"


def _bounded(lines: list[str], what: str) -> Iterator[str]:
    """As many lines as half of what GitHub takes has room for, and how many more there are."""
    size = 0
    for position, line in enumerate(lines):
        size += len(line.encode()) + 1
        if size > MOST_SUMMARY_BYTES // 2:
            yield from ("", f"and {len(lines) - position:,} more {what}")
            return
        yield line


def _by_rule(checked: Sequence[Checked]) -> Rows:
    """The worst or first finding of each rule in each trace, with the number of all of them."""
    first: dict[tuple[int, str], tuple[Checked, Finding]] = {}
    for each, finding in ranked(checked):
        first.setdefault((id(each), finding.code), (each, finding))
    return [(each, found, each.result.counts[found.code]) for each, found in first.values()]


def _command(checked: Checked, finding: Finding, count: int) -> str:
    title = as_property(f"{finding.code} {finding.name} ×{count:,}")
    place = where(finding, checked.start_ns)
    message = f"{checked.result.trace}: {place}: {finding.message}. Fix: {finding.fix}"
    return f"::{COMMANDS[finding.severity]} title={title}::{as_value(message)}"


def _not_judged(checked: Sequence[Checked]) -> Iterator[str]:
    for each in checked:
        coverage = each.result.coverage
        if coverage.verdict:
            message = f"{each.result.trace}: {coverage.verdict}. {coverage.share}"
            yield f"::error title={as_property(BLIND)}::{as_value(message)}"
        yield from (f"::error title=not judged::{as_value(said)}" for said in _unmet(each))


def _unmet(checked: Checked) -> Iterator[str]:
    for code in checked.unmet:
        yield f"{checked.result.trace}: {code} {unmet_line(code, checked.result)}"


def as_value(text: str) -> str:
    """A text as the message of a command, which it cannot end."""
    shown = clip(plain(text), MOST_CHARS)
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def as_property(text: str) -> str:
    """A text as a property of a command, which it cannot end."""
    return as_value(text).replace(":", "%3A").replace(",", "%2C")


def _table(checked: Sequence[Checked]) -> Iterator[str]:
    for each, finding, count in _by_rule(checked):
        cells = [
            f"{finding.severity} {finding.code} {finding.name}",
            f"{count:,}",
            each.result.trace,
            where(finding, each.start_ns),
            finding.message,
            finding.fix,
        ]
        yield f"| {' | '.join(markdown_literal(cell) for cell in cells)} |"


def _remark(checked: Checked) -> str:
    result, remarks = checked.result, [checked.result.coverage.share]
    remarks += left_out(checked)
    if result.not_applicable:
        remarks.append(f"not applicable (not recorded): {', '.join(result.not_applicable)}")
    return f"- {markdown_literal(result.trace)}: {markdown_literal('; '.join(remarks))}"
