"""`stepscope check`: run the rules, say what is wrong, fail CI when it matters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.progress import progress
from stepscope.app.report_text import format_result, format_summary

if TYPE_CHECKING:
    from stepscope.analyzers.run import CheckResult

_RANKS = {"error": 2, "warning": 1, "info": 0}


def _codes(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(code.strip().upper() for code in (value or "").split(",") if code.strip())


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="How to print the findings.")  # fmt: skip
@click.option("--output", type=click.Path(path_type=Path), help="Write there, not to stdout.")
@click.option("--select", callback=_codes, help="Only these rules: COR001,STV or all of a family.")
@click.option("--ignore", callback=_codes, help="Not these rules.")
@click.option("--fail-on", type=click.Choice(("error", "warning", "never")), default="error",
              show_default=True, help="Least severity that exits 1.")  # fmt: skip
@click.option("--all", "show_all", is_flag=True, help="Print every finding, not a few per rule.")
def check(
    traces: tuple[Path, ...],
    form: str,
    output: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    fail_on: str,
    show_all: bool,
) -> int:
    """Find conflicts in each TRACE.

    Exits 0 when nothing is at or above --fail-on, 1 when something is, 2 on wrong usage,
    3 when a trace cannot be read.
    """
    checked = [_check_one(path, select, ignore) for path in traces]
    results = [result for result, _ in checked]
    text = _as_json(results) if form == "json" else _as_text(checked, show_all)
    if output is None:
        click.echo(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
    return int(_fails(results, fail_on))


def _check_one(
    path: Path, select: tuple[str, ...], ignore: tuple[str, ...]
) -> tuple[CheckResult, int]:
    """Check one trace; returns the findings and the time from which the trace's times count."""
    from stepscope.analyzers import registry
    from stepscope.analyzers.run import check as run_rules
    from stepscope.ingest.trace import Trace

    rules = registry.select(select, ignore)
    with progress() as report:
        trace = Trace.open(path, progress=report)
        result = run_rules(trace, rules, progress=report)
        # As it was asked for: two traces of one name in two folders stay apart.
        return replace(result, trace=str(path)), trace.start_ns()


def _as_json(results: list[CheckResult]) -> str:
    objects = [result.as_dict() for result in results]
    return json.dumps(objects[0] if len(objects) == 1 else objects, indent=2)


def _as_text(checked: list[tuple[CheckResult, int]], show_all: bool) -> str:
    blocks = [format_result(result, start_ns, show_all=show_all) for result, start_ns in checked]
    if len(checked) > 1:
        blocks.append(format_summary([result for result, _ in checked]))
    return "\n\n".join(blocks)


def _fails(results: list[CheckResult], fail_on: str) -> bool:
    if fail_on == "never":
        return False
    least = _RANKS[fail_on]
    return any(_RANKS[f.severity] >= least for result in results for f in result.findings)
