"""`stepscope diff`: where two runs diverge, what each knew, what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress

if TYPE_CHECKING:
    from stepscope.analyzers.check.run import CheckResult
    from stepscope.analyzers.diff.compare import Difference, Divergence
    from stepscope.app.present.diff_knew import Knowledge
    from stepscope.ingest.trace import Trace

Known = tuple["Knowledge | None", "Knowledge | None"]
MAX_ONLY = 100
Results = tuple["CheckResult", "CheckResult"]


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
    from stepscope.analyzers.diff.compare import diff as compare
    from stepscope.app.present.diff_knew import knowledge

    with progress() as report:
        traces = open_trace(a, report), open_trace(b, report)
        report("comparing", 0, None)
        found = compare(*traces)
        known: Known = (None, None)
        if divergence := found.divergence:
            known = (
                knowledge(traces[0], divergence, divergence.row_a),
                knowledge(found.pairing.b, divergence, divergence.row_b),
            )
        results = _results(traces, report) if rules else None
    if form == "json":
        click.echo(json.dumps(_as_dict(found, known, results), indent=2, default=str))
        return
    for line in _text(traces, found, known, results):
        click.echo(line)


def _results(traces: tuple[Trace, Trace], report: Any) -> Results:
    """What the rules say of each trace."""
    from stepscope.analyzers.check.run import check

    return check(traces[0], progress=report), check(traces[1], progress=report)


def _text(
    traces: tuple[Trace, Trace], found: Difference, known: Known, results: Results | None
) -> list[str]:
    from stepscope.app.present.diff_text import divergence_lines, outcome_lines, verdict_lines

    lines = list(verdict_lines(found))
    if found.divergence is not None:
        starts = traces[0].start_ns(), traces[1].start_ns()
        lines += divergence_lines(found.divergence, known, starts)
    return [*lines, "", *outcome_lines(found, results)]


def _as_dict(found: Difference, known: Known, results: Results | None) -> dict[str, Any]:
    return {
        "a": found.a,
        "b": found.b,
        "verdict": found.verdict,
        "inputs": [asdict(each) for each in found.inputs],
        "divergence": None if found.divergence is None else _divergence(found.divergence),
        "knew": [None if each is None else _known(each) for each in known],
        "shorter": found.shorter,
        "first_steps": {name: _place(first) for name, first in found.firsts.items()},
        "first_other_duration": _place(found.slower),
        "not_compared": list(found.not_compared),
        "totals": found.outcomes.totals,
        "causes_ns": found.outcomes.causes,
        "requests": found.outcomes.requests.to_dicts(),
        "renumbered_kv_blocks": found.renumbered,
        "paired": {"by": dict(found.pairing.inferred), "a_by_b": dict(found.pairing.names)},
        "findings": None if results is None else _by_run(each.counts for each in results),
        "coverage": None if results is None else _by_run(each.coverage.share for each in results),
    }


def _divergence(divergence: Divergence) -> dict[str, Any]:
    """Whatever is different from here on to the end of the step: counted, and the first of it."""
    return {
        **asdict(divergence),
        "only_a": list(divergence.only_a[:MAX_ONLY]),
        "only_b": list(divergence.only_b[:MAX_ONLY]),
        "num_only_a": len(divergence.only_a),
        "num_only_b": len(divergence.only_b),
    }


def _by_run(each: Iterable[Any]) -> dict[str, Any]:
    return dict(zip("ab", each, strict=True))


def _place(first: tuple[int, int] | None) -> dict[str, int] | None:
    return None if first is None else {"rank": first[0], "step": first[1]}


def _known(known: Knowledge) -> dict[str, Any]:
    return {
        "ts_ns": known.ts_ns,
        "state": known.state.as_dict(),
        "step": dict(known.step),
        "decisions": list(known.decisions),
    }
