"""`stepscope diff`: where two runs diverge, what each knew, what came of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.gated import (
    SeveralRuns,
    gate_dicts,
    gate_lines,
    judged_of_several,
    judged_of_two,
    traces_in,
)
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import Report, progress
from stepscope.app.formats import add_to_job_summary

if TYPE_CHECKING:
    from stepscope.analyzers.gate.conditions import Condition
    from stepscope.analyzers.gate.judge import Judged
    from stepscope.app.replay.compared import Compared


FORMS = ("text", "json", "markdown", "github", "junit")
OF_CONDITIONS = ("github", "junit")
"""Formats of nothing but the conditions."""


@click.command()
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMS), default="text",
              show_default=True, help="Output format; markdown is a comment for a pull request, "
                                      "github and junit have the conditions.")  # fmt: skip
@click.option("--rules/--no-rules", default=True, show_default=True,
              help="Also run the rules on both traces, and compare the findings.")  # fmt: skip
@click.option("--fail-on", "conditions", multiple=True, metavar="CONDITION",
              help="Exit 1 where B is so: divergence, new-findings, or as makespan+2%, "
                   "ttft_p99+5%, tokens_per_s-3%; may be repeated, or have commas.")  # fmt: skip
@click.option("--link", metavar="URL", help="Where the report is, for markdown.")
@opens_traces
def diff(
    a: Path, b: Path, form: str, rules: bool, conditions: tuple[str, ...], link: str | None,
    open_trace: OpenTrace,
) -> int:  # fmt: skip
    """Find the first step at which the traces A and B diverge.

    Steps are compared by number: their decisions, admissions, batches (which requests, in which
    order, with how many tokens), placement on cores, collectives, accesses and outputs, but not
    their times. The answer names the settings and inputs that differ, the state of both schedulers
    at the divergence, and what it cost: which requests became faster and which slower.

    Requests are paired by their ids. Where a server makes up new ids in each run, they are paired
    by the ids that the clients gave, by the ids without their random part, or by their lengths in
    order of arrival, and the answer says which. KV blocks are paired by the order of their first
    use, whatever their numbers, and are compared only where the decisions are the same.

    A and B may be folders with the traces of several runs, as of several seeds. Then their medians
    are compared, and what is likely to be chance fails nothing: of totals what a rank-sum test
    gives more than 5%, of findings what a test of their number a step gives more than 1%.

    The command exits 0 whether or not the traces diverge, and with --fail-on 1 where a condition is
    met, or cannot be judged.

    Examples:

    \b
      stepscope record fcfs-preemption --variant all -o runs
      stepscope diff runs/before.trace runs/after.trace
      stepscope diff main.trace head.trace --fail-on new-findings --fail-on ttft_p99+5%
      stepscope diff runs-of-main/ runs-of-head/ --fail-on makespan+2% --format markdown
    """
    from stepscope.analyzers.gate.conditions import NEW_FINDINGS, conditions_of

    asked = conditions_of(conditions)
    if form in OF_CONDITIONS and not asked:
        raise click.UsageError(f"--format {form} has the conditions of --fail-on: name one.")
    rules = rules or any(each.text == NEW_FINDINGS for each in asked)
    folders = traces_in(a), traces_in(b)
    with progress() as report:
        found, judged = _judged((a, b), folders, asked, rules, open_trace, report)
    _print(found, judged, form, link)
    if form == "github":
        add_to_job_summary("\n".join(_comment(found, judged, link)) + "\n")
    return int(any(each.fails for each in judged))


def _judged(
    given: tuple[Path, Path], folders: tuple[list[Path], list[Path]], asked: Sequence[Condition],
    rules: bool, open_trace: OpenTrace, report: Report,
) -> tuple[Compared | SeveralRuns, Sequence[Judged]]:  # fmt: skip
    """Compare two runs, or those of folders, and judge conditions on them."""
    if any(folders):
        a, b = (folder or [path] for folder, path in zip(folders, given, strict=True))
        opened = partial(open_trace, report=report)
        several = judged_of_several((a, b), asked, opened, rules=rules, report=report)
        return several, several.judged
    from stepscope.app.replay.compared import compared

    both = compared(
        (open_trace(given[0], report), open_trace(given[1], report)), rules=rules, report=report
    )
    return both, judged_of_two(both, asked) if asked else []


def _print(
    found: Compared | SeveralRuns, judged: Sequence[Judged], form: str, link: str | None
) -> None:
    if form == "json":
        gate = {"gate": gate_dicts(judged)} if judged else {}
        click.echo(json.dumps({**found.as_dict(), **gate}, indent=2, default=str))
        return
    if form in OF_CONDITIONS:
        click.echo(
            import_module(f"stepscope.app.formats.gate_as_{form}").render(found.name, judged)
        )
        return
    if form == "markdown":
        lines = _comment(found, judged, link)
    else:
        lines = [*found.lines(), *gate_lines(judged)]
    for line in lines:
        click.echo(line)


def _comment(
    found: Compared | SeveralRuns, judged: Sequence[Judged], link: str | None
) -> list[str]:
    from stepscope.app.formats.as_comment import comment_of_several, comment_of_two

    if isinstance(found, SeveralRuns):
        counts = len(found.a), len(found.b)
        return [*comment_of_several(found.medians(), counts, judged, link)]
    return [*comment_of_two(found.found, judged, link)]
