"""`stepscope diff`: where two runs diverge, what each knew, what came of it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from stepscope.app.cli.compared import compared
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress


@click.command()
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="Output format.")  # fmt: skip
@click.option("--rules/--no-rules", default=True, show_default=True,
              help="Also run the rules on both traces, and compare the findings.")  # fmt: skip
@opens_traces
def diff(a: Path, b: Path, form: str, rules: bool, open_trace: OpenTrace) -> None:
    """Find the first step at which the traces A and B diverge.

    Steps are compared by number: their decisions, admissions, batches (which requests, in which
    order, with how many tokens), placement on cores, collectives, accesses and outputs, but not
    their times. The answer names the settings and inputs that differ, the state of both schedulers
    at the divergence, and what it cost: which requests became faster and which slower.

    Requests are paired by their ids. Where a server makes up new ids in each run, they are paired
    by the ids that the clients gave, by the ids without their random part, or by their lengths in
    order of arrival, and the answer says which. KV blocks are paired by the order of their first
    use, whatever their numbers, and are compared only where the decisions are the same.

    The command exits 0 whether or not the traces diverge.

    Examples:

    \b
      stepscope record fcfs-preemption --variant all -o runs
      stepscope diff runs/before.trace runs/after.trace
      stepscope diff runs/before.trace runs/after.trace --format json --no-rules
    """
    with progress() as report:
        found = compared((open_trace(a, report), open_trace(b, report)), rules=rules, report=report)
    if form == "json":
        click.echo(json.dumps(found.as_dict(), indent=2, default=str))
        return
    for line in found.lines():
        click.echo(line)
