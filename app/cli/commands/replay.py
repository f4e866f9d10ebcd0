"""`stepscope replay`: feed a recorded run to the scheduler that is installed somewhere."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import make_room, may_overwrite
from stepscope.app.cli.progress import progress

if TYPE_CHECKING:
    from stepscope.analyzers.replay.rank_by_rank import Replay

DIVERGED = 4


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--engine", type=click.Choice(("vllm", "sglang")),
              help="The engine whose scheduler is used. By default, the recorded one.")  # fmt: skip
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
    help="Write the replay as a trace to this path.",
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
    ctx: click.Context, trace: Path, engine: str | None, env: str | None, texts: tuple[str, ...],
    out: Path | None, ranks: tuple[int, ...], silent_s: float, form: str, force: bool,
    open_trace: OpenTrace,
) -> None:  # fmt: skip
    """Replay a recorded run on a real scheduler, without its model and without a GPU.

    The scheduler that is installed in ENV gets the recorded configuration and the recorded calls:
    the same requests arrive, finish and are aborted between the same steps, and each step samples
    the same number of tokens. Its decisions are recorded, and compared with those of the trace.

    With another version, policy or setting the decisions diverge at some step, which is named. From
    there on the duration of each step comes from a cost model that is fitted to the trace, and the
    error of the model is printed.

    The command exits 0 when every step is the same, 4 when the runs diverge, 5 when the run is of a
    kind that is not replayed, and 6 when the engine is not in ENV, fails or hangs.

    Examples:

    \b
      stepscope replay run.trace --python ~/vllm-0.33
      stepscope replay run.trace --python ~/vllm --set max_num_seqs=64 -o other.trace
    """
    from stepscope.analyzers.replay.rank_by_rank import replay as replayed
    from stepscope.analyzers.replay.recorded_settings import engine_of, settings_of
    from stepscope.app.replay.launch import python_of, run

    python = python_of(env)
    with tempfile.TemporaryDirectory(prefix="stepscope-replay-") as folder:
        into = out or Path(folder) / "replay.trace"
        make_room(into, trace, force=force)
        _refuse_what_cannot_be_written(into)
        with progress() as report:
            recorded = open_trace(trace, report)
            of = engine or engine_of(recorded.manifest.producer) or "vllm"
            found = replayed(
                recorded, of, settings_of(texts, of), into,
                lambda script: run(script, python, into, report, silent_s), ranks,
            )  # fmt: skip
        _print(found, form)
    ctx.exit(0 if found.is_same else DIVERGED)


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
