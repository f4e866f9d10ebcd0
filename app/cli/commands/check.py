"""`stepscope check`: run the rules, say what is wrong, fail CI when it matters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.analyzers.findings.wording import times
from stepscope.app.check_config import FAIL_ON, CheckConfig, load_config
from stepscope.app.cli.against import num_steps, run_of_checked, without_usual
from stepscope.app.cli.complaints import complain
from stepscope.app.cli.gated import traces_in
from stepscope.app.cli.given import given_twice
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.failures import told
from stepscope.app.formats import (
    FORMATS,
    Asked,
    Checked,
    Unread,
    add_to_job_summary,
    exit_code,
    format_named,
    with_unmet,
)
from stepscope.app.printable import plain
from stepscope.ingest.errors import TraceError

if TYPE_CHECKING:
    from stepscope.analyzers.findings.rule import Rule
    from stepscope.analyzers.gate.judge import Run

Outputs = list[tuple[str, Path | None]]


def _codes(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    if not values:
        return None
    codes = (code.strip().upper() for value in values for code in value.split(","))
    return tuple(dict.fromkeys(filter(None, codes)))


def _outputs(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> list[tuple[str, Path]]:
    outputs = []
    for value in values:
        form, _, file = value.partition("=")
        if form not in FORMATS or not file:
            raise click.BadParameter(f"{value!r} is not FORMAT=FILE, with one of {list(FORMATS)}")
        outputs.append((form, Path(file)))
    if again := given_twice(str(file) for _, file in outputs):
        raise click.BadParameter(f"{again}: two formats cannot be written to one file")
    return outputs


@click.command()
@click.argument("traces", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(tuple(FORMATS)), default="text",
              show_default=True, help="Format of the findings.")  # fmt: skip
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Write the findings to this file, not to stdout.",
)
@click.option("--also", multiple=True, callback=_outputs, metavar="FORMAT=FILE",
              help="Also write the findings to FILE in FORMAT; may be repeated.")  # fmt: skip
@click.option("--select", multiple=True, callback=_codes, metavar="CODES",
              help="Run only these rules or families (COR001,STV); may be repeated.")  # fmt: skip
@click.option("--ignore", multiple=True, callback=_codes, metavar="CODES",
              help="Skip these rules or families; may be repeated.")  # fmt: skip
@click.option("--require", multiple=True, callback=_codes, metavar="CODES",
              help="Exit 1 if one of these rules or families cannot judge a trace; may be "
                   "repeated.")  # fmt: skip
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    help="The lowest severity that makes the command exit 1.  [default: error]",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Do not report findings that this file lists.",
)
@click.option("--against", multiple=True, type=click.Path(path_type=Path), metavar="TRACE",
              help="Do not report what a rule finds no more often in these traces, or folders of "
                   "them, of before a change; may be repeated.")  # fmt: skip
@click.option("--update-baseline", is_flag=True,
              help="Write all findings to the --baseline file, and exit 0.")  # fmt: skip
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help="Print every finding, not only the first few of each rule.",
)
@click.option(
    "--show-config",
    is_flag=True,
    help="Print the rules, their thresholds and where each is set; check nothing.",
)
@opens_traces
def check(  # noqa: PLR0913, PLR0917 - one per option
    traces: tuple[Path, ...],
    form: str,
    output: Path | None,
    also: list[tuple[str, Path]],
    select: tuple[str, ...] | None,
    ignore: tuple[str, ...] | None,
    require: tuple[str, ...] | None,
    fail_on: str | None,
    baseline: Path | None,
    against: tuple[Path, ...],
    update_baseline: bool,
    show_all: bool,
    show_config: bool,
    open_trace: OpenTrace,
) -> int:
    """Find conflicts in each TRACE.

    The command exits 0 when no finding is at or above --fail-on; 1 when one is, or when a rule of
    --require is not applicable; 2 on wrong usage or configuration; 3 when a trace cannot be read,
    holds nothing, or cannot be judged by any rule (not with --fail-on never). A trace that cannot
    be read is named, and the others are checked all the same.

    Options override the settings in stepscope.toml, or in [tool.stepscope] of pyproject.toml.
    """
    if output and any(file == output for _, file in also):
        raise click.UsageError(f"{output}: two formats cannot be written to one file.")
    config = load_config().with_options(
        select=select, ignore=ignore, require=require, fail_on=fail_on, baseline=baseline
    )
    if show_config:
        return _show(config)
    if not traces:
        raise click.UsageError("Missing argument 'TRACES...'.")
    if update_baseline:
        return _update_baseline(traces, config, open_trace)
    seen = _check_all(traces, config, open_trace)
    checked = seen.checked
    if against:
        checked = without_usual(checked, seen.steps, _before(against, config, open_trace))
    checked = _without_known(checked, config.baseline)
    for each in seen.unread:
        complain(each.said)
    _write(checked, [(form, output), *also], Asked(show_all, config.fail_on, tuple(seen.unread)))
    return TraceError.exit_code if seen.unread else exit_code(checked, config.fail_on)


@dataclass
class _Seen:
    """What was checked, with the steps of each, and what could not be read."""

    checked: list[Checked] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def _check_all(traces: tuple[Path, ...], config: CheckConfig, open_trace: OpenTrace) -> _Seen:
    """Check each trace; what cannot be read hides nothing of the others, but where there is none.

    Raises what was wrong with the first where no trace at all could be read.
    """
    rules, required = config.rules(), config.required()
    seen, wrong = _Seen(), list[Exception]()
    for path in dict.fromkeys(map(_trace_of, traces)):
        try:
            checked, steps = _check_one(path, rules, open_trace)
        except Exception as error:
            said, code = told(error)
            if code != TraceError.exit_code and not isinstance(error, OSError):
                raise
            wrong.append(error)
            seen.unread.append(Unread(str(path), said))
        else:
            seen.checked.append(with_unmet(checked, required))
            seen.steps.append(steps)
    if wrong and not seen.checked:
        for each in seen.unread[1:]:
            complain(each.said)
        raise wrong[0]
    return seen


def _before(against: tuple[Path, ...], config: CheckConfig, open_trace: OpenTrace) -> list[Run]:
    """The runs of before a change; raises what is wrong with one that cannot be read."""
    rules = config.rules()
    paths = [each for path in against for each in traces_in(path) or [path]]
    each = (_check_one(path, rules, open_trace) for path in paths)
    return [run_of_checked(checked, steps) for checked, steps in each]


def _trace_of(path: Path) -> Path:
    """The trace that a file belongs to: a hook names the files of a folder, not the folder."""
    folders = (each for each in path.parents if each.suffix == ".trace") if path.is_file() else ()
    return next((each for each in folders if (each / "manifest.json").is_file()), path)


def _check_one(path: Path, rules: tuple[Rule, ...], open_trace: OpenTrace) -> tuple[Checked, int]:
    from stepscope.analyzers.check.run import check as run_rules

    with progress() as report:
        trace = open_trace(path, report)
        result = run_rules(trace, rules, progress=report)
        # As it was asked for: two traces of one name in two folders stay apart.
        checked = Checked(replace(result, trace=str(path)), trace.start_ns())
        return checked, num_steps(trace)


def _without_known(checked: list[Checked], baseline: Path | None) -> list[Checked]:
    if baseline is None:
        return checked
    from stepscope.analyzers.check.baseline import load_baseline, new_findings

    new = new_findings([each.result for each in checked], load_baseline(baseline))
    return [
        replace(each, result=result, num_known=len(each.result.findings) - len(result.findings))
        for each, result in zip(checked, new, strict=True)
    ]


def _update_baseline(traces: tuple[Path, ...], config: CheckConfig, open_trace: OpenTrace) -> int:
    if config.baseline is None:
        raise click.UsageError("--update-baseline needs --baseline FILE.")
    from stepscope.analyzers.check.baseline import baseline_of, save_baseline

    seen = _check_all(traces, config, open_trace)
    if seen.unread:
        raise TraceError(f"{seen.unread[0].said}; the baseline stays as it is")
    checked = seen.checked
    if blind := [each.result for each in checked if each.result.coverage.is_blind]:
        # What was known before is still there, as far as anybody knows.
        what = f"{blind[0].coverage.verdict}: the baseline stays as it is"
        raise TraceError(what, where=blind[0].trace)
    results = [each.result for each in checked]
    save_baseline(baseline_of(results), config.baseline)
    num_found = sum(len(result.findings) for result in results)
    click.echo(f"{plain(str(config.baseline))}: {times(num_found, 'finding')} known from now on")
    return 0


def _write(checked: list[Checked], outputs: Outputs, asked: Asked) -> None:
    for form, file in outputs:
        rendered = format_named(form).render(checked, asked)
        if file is not None:
            file.write_text(rendered.text + "\n", encoding="utf-8", errors="replace")
        elif rendered.text:
            click.echo(rendered.text)
        for note in rendered.notes:
            click.echo(f"stepscope: {plain(note)}", err=True)
        if form == "github":
            from stepscope.app.formats.as_github import job_summary

            add_to_job_summary(job_summary(checked, asked))


def _show(config: CheckConfig) -> int:
    from stepscope.app.config_text import format_config

    click.echo(format_config(config))
    return 0
