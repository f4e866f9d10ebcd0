"""`stepscope record`: run the reference engine and record it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.output import make_room, may_overwrite
from stepscope.app.cli.progress import progress
from stepscope.app.cli.reference_runs import cost_of, pairs_of
from stepscope.app.printable import plain
from stepscope.app.text_table import format_table, print_table
from stepscope.ingest.errors import ConfigError, StepscopeError

if TYPE_CHECKING:
    from stepscope.engine.scenarios import Options, RunResult, Scenario
    from stepscope.engine.workloads.graphs import Graphs
    from stepscope.engine.workloads.workload import Workload


def _settings(
    _ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    return pairs_of(texts)


@click.command()
@click.argument("scenario", required=False)
@click.option("--list", "list_all", is_flag=True,
              help="List the scenarios, variants, faults and settings, and exit.")  # fmt: skip
@click.option("--variant",
              help="The variant of the scenario, or `all` to record each into a folder  "
                   "[default: before; with --fault, the one without conflicts]")  # fmt: skip
@click.option("--fault", "faults", multiple=True, metavar="NAME",
              help="Switch on a known bug; may be repeated.")  # fmt: skip
@click.option("--executor", help="What runs the batches  [default: the scenario's first]")
@click.option("--profile", is_flag=True, help="Also write a torch.profiler trace, with the steps.")
@click.option("--seed", default=0, show_default=True, help="The random seed of the workload.")
@click.option("--set", "settings", multiple=True, callback=_settings, metavar="KEY=VALUE",
              help="Change a setting of the scenario; may be repeated.")  # fmt: skip
@click.option("--workload", "file", type=click.Path(path_type=Path), metavar="FILE",
              help="Take the requests from a file (stepscope's JSON, Azure's CSV, Mooncake's JSON "
                   "Lines) or from a trace; for mix-admission also a task graph, from stepscope's "
                   "JSON or from a trace of core groups.")  # fmt: skip
@click.option("--first", type=click.IntRange(1), metavar="N",
              help="With --workload, use only its first N requests.")  # fmt: skip
@click.option("--speed", type=click.FloatRange(0, min_open=True), metavar="X",
              help="With --workload, let its requests arrive X times as fast.")  # fmt: skip
@click.option("--cost", "priced", type=click.Path(path_type=Path), metavar="TRACE",
              help="Fit the duration of steps to those of this trace.")  # fmt: skip
@click.option("-o", "--output", "out", type=click.Path(path_type=Path),
              help="The trace to write  [default: SCENARIO-VARIANT.trace]")  # fmt: skip
@may_overwrite
def record(  # noqa: PLR0913, PLR0917 - one argument for each option
    scenario: str | None,
    list_all: bool,
    variant: str | None,
    faults: tuple[str, ...],
    executor: str | None,
    profile: bool,
    seed: int,
    settings: dict[str, str],
    file: Path | None,
    first: int | None,
    speed: float | None,
    priced: Path | None,
    out: Path | None,
    force: bool,
) -> int:
    """Run SCENARIO on the reference engine and record it.

    Prints the results of each variant: `outcome` says how its run ended, and - stands for what is
    not known, such as a latency where no request was served. --variant all skips a variant that
    does not support the executor or a setting. Three lines at the end say what went wrong in the
    first variant, which finding shows it, and which command to type next.

    mix-admission runs on the core groups of Ascend NPUs, each with a cube core (AIC) and two
    vector cores (AIV). A MIX task needs both kinds of core of one group at once.

    The command exits 0 when the run ended, or stopped because of a fault that --fault switched on;
    1 when it was stopped, because the device stalled or a batch could not be run, and then the
    trace holds everything until that point; 2 on wrong usage or configuration.

    Examples:

    \b
      stepscope record --list
      stepscope record mix-admission --variant after -o after.trace
      stepscope record mix-admission --fault mix-shift-wrap
      stepscope record fcfs-preemption --variant all -o runs/
      stepscope record fcfs-preemption --workload azure_conv.csv --first 100 --speed 10
      stepscope record fcfs-preemption --cost vllm.json.gz
    """
    from stepscope.engine.scenarios import SCENARIOS, Options
    from stepscope.engine.scenarios import scenario as find

    if list_all or scenario is None:
        click.echo("\n\n".join(_describe(known) for known in SCENARIOS))
        return 0
    chosen = find(scenario)
    variants = _variants(chosen, variant, faults)
    workload = _graphs(chosen, file, first, speed) or _workload(chosen, file, first, speed)
    options = Options(
        seed, settings, frozenset(faults), executor, profile, workload, cost=cost_of(priced)
    )
    ran: list[RunResult] = []
    refused: dict[str, ConfigError] = {}
    for name in variants:
        path = _place("-".join((chosen.name, name, *faults)), name, out, many=len(variants) > 1)
        make_room(path, file, priced, force=force)
        try:
            ran.append(_recorded(chosen, name, path, options))
        except ConfigError as error:
            shutil.rmtree(path, ignore_errors=True)  # what was begun of it
            refused[name] = error
    if not ran:
        raise refused[variants[0]]
    print_table(("variant", *chosen.columns), [_row(chosen, each) for each in ran])
    for name, why in refused.items():
        click.echo(f"skipped {name}: {plain(str(why))}", err=True)
    shown = next((result for result in ran if result.variant == "before"), ran[0])
    if shown.path is not None:
        for line in _what_went_wrong(shown.variant, shown.path, shown.stopped):
            click.echo(plain(line), err=True)
    return int(any(each.stopped for each in ran) and not faults)


def _recorded(chosen: Scenario, name: str, path: Path, options: Options) -> RunResult:
    from stepscope.engine.runs.rerun import run_to_its_end

    with progress() as report:
        report(f"recording {chosen.name} {name}", 0, None)
        result = run_to_its_end(chosen, name, path, options)
    click.echo(f"recorded {path}", err=True)
    if result.stopped:
        click.echo(f"warning: {name} was given up: {plain(result.stopped)}", err=True)
    return result


def _what_went_wrong(variant: str, path: Path, stopped: str | None) -> tuple[str, str, str]:
    """What went wrong in a run, which finding shows it, and the command to type next.

    Of a run that was `stopped` it is why.
    """
    from stepscope.analyzers.check.run import check
    from stepscope.analyzers.findings.finding import SEVERITIES
    from stepscope.analyzers.findings.wording import times
    from stepscope.ingest.trace import Trace

    look = f"look at it: stepscope tui {shlex.quote(str(path))}"
    try:
        with progress() as report:
            report(f"checking {variant}", 0, None)
            found = check(Trace.open(path))
    except StepscopeError as error:
        return f"{variant} was not checked: {error}", "finding: not known", look
    if not found.findings and stopped:
        return f"what went wrong in {variant}: {stopped}", "finding: none", look
    if not found.findings:
        judged = f"none of {times(len(found.counts), 'rule')} that could judge found anything"
        return f"nothing went wrong in {variant}: {judged}", "finding: none", look
    worst = min(found.findings, key=lambda finding: SEVERITIES.index(finding.severity))
    at = "" if worst.step is None else f", first at step {worst.step:,}"
    return (
        f"what went wrong in {variant}: {stopped or worst.message}",
        f"finding: {worst.code} {worst.name}, {worst.severity}, "
        f"{times(found.counts[worst.code], 'time')}{at}",
        f"{look} --page findings",
    )


def _variants(chosen: Scenario, wanted: str | None, faults: Sequence[str]) -> tuple[str, ...]:
    if wanted is None:
        from stepscope.engine.faults import fault

        return (fault(faults[0]).variant if faults else "before",)
    if wanted == "all":
        return chosen.variants
    if wanted not in chosen.variants:
        raise ConfigError(
            f"{chosen.name} has no variant {wanted!r}",
            todo=f"choose one of: {', '.join(chosen.variants)}, all",
        )
    return (wanted,)


def _graphs(
    chosen: Scenario, file: Path | None, first: int | None, speed: float | None
) -> Graphs | None:
    """Return the task graphs of a file, where the scenario runs such, and say what is inferred."""
    from stepscope.engine.workloads.graph_files import graphs_in

    graphs = graphs_in(file) if file and _takes_graphs(chosen) else None
    if graphs is None:
        return None
    if first or speed:
        raise ConfigError("--first and --speed are about requests, and a task graph has none")
    for doubt in graphs.inferred:
        click.echo(f"warning: {doubt}", err=True)
    if took_ns := [each for each in graphs.recorded_ns if each is not None]:
        mean_us = sum(took_ns) / len(took_ns) / 1000
        click.echo(f"in {graphs.source} itself a graph took {mean_us:,.1f} µs", err=True)
    return graphs


def _takes_graphs(known: Scenario) -> bool:
    from stepscope.engine.executors.kinds import executor_kind

    return any(executor_kind(name).takes_graphs for name in known.executors)


def _workload(
    chosen: Scenario, file: Path | None, first: int | None, speed: float | None
) -> Workload | None:
    from stepscope.engine.workloads.workload import Workload

    if file is None:
        if first or speed:
            raise ConfigError(
                "--first and --speed are about a workload", todo="add --workload FILE"
            )
        return None
    try:
        workload = Workload.load(file)
    except StepscopeError as error:
        raise _of_another_kind(chosen, file, error) from None
    return workload.first(first or len(workload)).faster(speed or 1)


def _of_another_kind(chosen: Scenario, file: Path, error: StepscopeError) -> StepscopeError:
    """Say what a file without requests is, where it is another scenario's, or what could be meant.

    The error that reading it gave is returned where nothing more is known.
    """
    from stepscope.engine.scenarios import SCENARIOS
    from stepscope.engine.workloads.graph_files import HOW_TO_WRITE, graphs_in

    takers = " or ".join(each.name for each in SCENARIOS if _takes_graphs(each))
    if _takes_graphs(chosen):
        if not error.todo.startswith("write"):
            return error
        todo = f"{error.todo}, or {HOW_TO_WRITE}"
        return ConfigError(error.what, where=error.where, todo=todo)
    try:
        is_of_graphs = graphs_in(file) is not None
    except StepscopeError:
        return error
    if not is_of_graphs:
        return error
    return ConfigError(
        f"holds task graphs, and {chosen.name} takes requests",
        where=str(file),
        todo=f"record {takers} with it, or give a file of requests",
    )


def _place(name: str, variant: str, out: Path | None, *, many: bool) -> Path:
    if many:
        return (out or Path(name.replace(f"-{variant}", "", 1))) / f"{variant}.trace"
    return out or Path(f"{name}.trace")


def _row(chosen: Scenario, result: RunResult) -> list[object]:
    """Return a row of the scenario's table; a column that names a rule is its count.

    The count is null where the rule does not apply.
    """
    from stepscope.analyzers.check.registry import RULES
    from stepscope.analyzers.check.run import check
    from stepscope.ingest.trace import Trace

    asked = [rule for rule in RULES if rule.code in chosen.columns]
    counts = check(Trace.open(result.path), asked).counts if asked and result.path else {}
    codes = {rule.code: counts.get(rule.code) for rule in asked}
    values = {"variant": result.variant, **result.metrics, **codes}
    return [values.get(column) for column in ("variant", *chosen.columns)]


def _describe(known: Scenario) -> str:
    from stepscope.engine.faults import faults_of

    settings = [(name, str(each.default), each.help) for name, each in known.settings.items()]
    faults = [(each.name, each.summary) for each in faults_of(known.name)]
    lines = [
        f"{known.name}  {known.summary}",
        f"  variants: {', '.join(known.variants)}",
        f"  executors: {', '.join(known.executors)}",
    ]
    for header, rows in ((("--fault", "is"), faults), (("--set", "default", "is"), settings)):
        if rows:
            lines += ["", *(f"  {line}" for line in format_table(header, rows))]
    return "\n".join(lines)
