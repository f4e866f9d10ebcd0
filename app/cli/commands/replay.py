"""`stepscope replay`: feed a recorded run to the scheduler that is installed somewhere."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import make_room, may_overwrite
from stepscope.app.cli.progress import progress
from stepscope.app.cli.reference_runs import cost_of, pairs_of
from stepscope.app.cli.run_again import Sweep
from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.analyzers.replay.rank_by_rank import Replay
    from stepscope.engine.runs.rerun import Changes
    from stepscope.ingest.progress import Progress
    from stepscope.ingest.trace import Trace

DIVERGED = 4


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--engine", type=click.Choice(("vllm", "sglang", "stepscope")),
              help="The engine whose scheduler is used; stepscope is the reference engine. By "
              "default, the recorded one.")  # fmt: skip
@click.option("--variant", metavar="NAME",
              help="Of the reference engine: run this variant of the scenario.")  # fmt: skip
@click.option("--no-fault", "without", metavar="NAME", multiple=True,
              help="Of the reference engine: switch this fault off; may be repeated.")  # fmt: skip
@click.option("--cost", "priced", metavar="TRACE", type=click.Path(path_type=Path),
              help="Of the reference engine: fit the duration of steps to this trace.")  # fmt: skip
@click.option("--check", "demands_same", is_flag=True,
              help="Fail unless the unchanged run makes the same decisions at every step, and, if "
              "the reference engine ran on a virtual clock, writes the same bytes.")  # fmt: skip
@click.option("--sweep", "swept", metavar="NAME=A..B", multiple=True,
              help="Of the reference engine: run once with each value (A..B, A..B:STEP, or A,B); "
              "repeated, with each combination.")  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="With --sweep: write a page of charts, too.")  # fmt: skip
@click.option("--python", "env", metavar="ENV",
              help="The virtual environment of the engine: its folder, or its Python. "
              "By default, the one that stepscope is installed in.")  # fmt: skip
@click.option(
    "--set",
    "texts",
    metavar="NAME=VALUE",
    multiple=True,
    help="Change a setting of the scheduler from what was recorded; may be repeated.",
)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    help="Write the replay as a trace to this path; with --sweep, a folder of traces.",
)
@click.option("--rank", "ranks", type=click.IntRange(min=0), multiple=True,
              help="Replay this rank only; may be repeated.")  # fmt: skip
@click.option("--timeout", "silent_s", type=click.FloatRange(min=0, min_open=True),
              metavar="SECONDS", default=600.0, show_default=True,
              help="Give up when the engine says nothing for so long.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="Output format.")  # fmt: skip
@may_overwrite
@opens_traces
@click.pass_context
def replay(  # noqa: PLR0913, PLR0917 - one per option
    ctx: click.Context, trace: Path, engine: str | None, variant: str | None,
    without: tuple[str, ...], priced: Path | None, demands_same: bool,
    swept: tuple[str, ...], page: Path | None, env: str | None,
    texts: tuple[str, ...], out: Path | None, ranks: tuple[int, ...], silent_s: float, form: str,
    force: bool, open_trace: OpenTrace,
) -> None:  # fmt: skip
    """Replay a recorded run: on a real scheduler, without its model and without a GPU.

    The scheduler that is installed in ENV gets the recorded configuration and the recorded calls:
    the same requests arrive, finish and are aborted between the same steps, and each step samples
    the same number of tokens. Its decisions are recorded, and compared with those of the trace.

    With another version, policy or setting the decisions diverge at some step, which is named. From
    there on the duration of each step comes from a cost model that is fitted to the trace, and the
    error of the model is printed.

    A run of the reference engine (`stepscope record`) is run again as its manifest says that it was
    given, or with another variant, settings, costs or without a fault. On its virtual clock an
    unchanged run has the same bytes. A changed one is compared as `stepscope diff` does it; with
    --sweep, many are put side by side. With --engine stepscope a run of another engine is simulated
    anew: its arrivals, lengths and limits, at what its steps cost.

    The command exits 0 when every step is the same, 4 when the runs diverge, 5 when the run is of a
    kind that is not replayed, and 6 when the engine is not in ENV, fails or hangs.

    Examples:

    \b
      stepscope replay run.trace --python ~/vllm-0.33
      stepscope replay run.trace --python ~/vllm --check
      stepscope replay run.trace --python ~/vllm --set max_num_seqs=64 -o other.trace
      stepscope replay before.trace --check
      stepscope replay before.trace --variant after -o after.trace
      stepscope replay vllm.trace --engine stepscope --set max_num_seqs=16
      stepscope replay before.trace --sweep max_num_seqs=4..20:4 --page sweep.html
    """
    of_reference = {"--variant": variant, "--no-fault": without, "--cost": priced,
                    "--sweep": swept, "--page": page}  # fmt: skip
    of_others = {"--python": env, "--rank": ranks}
    with tempfile.TemporaryDirectory(prefix="stepscope-replay-") as folder, progress() as report:
        into = out or Path(folder) / "replay.trace"
        make_room(into, trace, priced, force=force)
        _refuse_what_cannot_be_written(into)
        recorded = open_trace(trace, report)
        if _is_of_reference(recorded, engine):
            _refuse(of_others, "a run of an engine that is installed")
            changes = _changes(variant, texts, without, priced)
            is_same = _on_reference(
                recorded, changes, Sweep(swept, page, force), into, report, form,
                demands_same=demands_same,
            )  # fmt: skip
        else:
            _refuse(of_reference, "a run of the reference engine")
            if demands_same:
                _refuse_what_is_not_the_same_run(recorded, engine, texts)
            asked = _RealScheduler(engine, env, texts, ranks, silent_s)
            is_same = _replayed_for_real(recorded, asked, into, report, form)
    ctx.exit(0 if is_same else DIVERGED)


@dataclass(frozen=True, slots=True)
class _RealScheduler:
    """What is asked of an engine that is installed."""

    engine: str | None
    env: str | None
    texts: tuple[str, ...]
    ranks: tuple[int, ...]
    silent_s: float


def _is_of_reference(recorded: Trace, engine: str | None) -> bool:
    from stepscope.app.replay.own_engine import OURS, is_ours

    return engine == OURS or (engine is None and is_ours(recorded))


def _on_reference(
    recorded: Trace, changes: Changes, swept: Sweep, into: Path, report: Progress, form: str, *,
    demands_same: bool,
) -> bool:  # fmt: skip
    """Run it on the reference engine: again if that recorded it, else with its own decisions."""
    from stepscope.app.cli.run_again import resimulate, run_again, run_sweep
    from stepscope.app.replay.own_engine import is_ours

    is_again = is_ours(recorded)
    if demands_same and not is_again:
        raise _another_engine(recorded)
    if swept.texts or swept.page:
        _refuse({"--check": demands_same}, "a replay without --sweep")
        run_sweep(recorded, changes, swept, into, report, form)
        return True
    if is_again:
        return run_again(recorded, changes, into, report, form, demands_same=demands_same)
    return resimulate(recorded, changes, into, report, form)


def _refuse_what_is_not_the_same_run(
    recorded: Trace, engine: str | None, texts: tuple[str, ...]
) -> None:
    """Refuse --check for changed runs, other engines, and recordings without batches."""
    from stepscope.analyzers.replay.recorded_settings import engine_of
    from stepscope.app.cli.run_again import refuse_changes

    refuse_changes(texts)
    if engine is not None and engine != engine_of(recorded.manifest.producer):
        raise _another_engine(recorded)
    if not (recorded.has("steps") and recorded.has("batch_rows")):
        raise ConfigError("--check: it has no batches, so no decisions can be compared",
                          where=recorded.name, todo="leave --check out")  # fmt: skip


def _another_engine(recorded: Trace) -> ConfigError:
    return ConfigError(
        "--check replays on the engine that recorded the run, but --engine names another one",
        where=recorded.name, todo="leave out --check, or --engine",
    )  # fmt: skip


def _refuse(given: dict[str, Any], whom: str) -> None:
    """Options of the one kind of replay say nothing to the other."""
    if wrong := [name for name, value in given.items() if value]:
        raise ConfigError(f"{', '.join(wrong)}: only for {whom}")


def _changes(
    variant: str | None, texts: tuple[str, ...], without: tuple[str, ...], priced: Path | None
) -> Changes:
    from stepscope.engine.runs.rerun import Changes

    return Changes(variant, pairs_of(texts), without, cost_of(priced))


def _replayed_for_real(
    recorded: Trace, asked: _RealScheduler, into: Path, report: Progress, form: str
) -> bool:
    """Ask the scheduler of an engine; returns whether it decided the same at every step."""
    from stepscope.analyzers.replay.rank_by_rank import replay as replayed
    from stepscope.analyzers.replay.recorded_settings import engine_of, settings_of
    from stepscope.app.replay.launch import python_of, run

    python = python_of(asked.env)
    of = asked.engine or engine_of(recorded.manifest.producer) or "vllm"
    found = replayed(
        recorded, of, settings_of(asked.texts, of), into,
        lambda script: run(script, python, into, report, asked.silent_s), asked.ranks,
    )  # fmt: skip
    _print(found, form)
    return found.is_same


def _refuse_what_cannot_be_written(out: Path) -> None:
    """Before the engine is started, which takes long."""
    from stepscope.ingest.errors import WriteError

    try:
        out.mkdir(parents=True)
        out.rmdir()
    except OSError as error:
        raise WriteError(error.strerror or str(error), where=str(out)) from None


def _print(found: Replay, form: str) -> None:
    from stepscope.app.replay.what_came import replay_lines

    if form == "json":
        click.echo(json.dumps(_as_dict(found), indent=2))
        return
    for line in replay_lines(found):
        click.echo(line)


def _as_dict(found: Replay) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "recorded": found.recorded.name,
        "is_same": found.is_same,
        "settings": dict(found.settings),
        "ranks": [
            {
                "rank": each.rank,
                **each.said,
                "compared": None if each.compared is None else asdict(each.compared),
                "costs": None if each.costs is None else asdict(each.costs.costs),
            }
            for each in found.ranks
        ],
        "served": {"num_requests": found.served.num_requests, **found.served.times},
    }
