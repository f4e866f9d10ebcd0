"""`stepscope replay`: feed a recorded run to the scheduler that is installed somewhere."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress

if TYPE_CHECKING:
    from stepscope.analyzers.replay.rank_by_rank import Replay

DIVERGED = 4


@click.command()
@click.argument("trace", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--engine", type=click.Choice(("vllm",)), default="vllm", show_default=True,
              help="Whose scheduler.")  # fmt: skip
@click.option("--python", "env", metavar="ENV",
              help="The environment that the engine is installed in: its folder, or its Python. "
              "Without it, that of stepscope.")  # fmt: skip
@click.option("--set", "texts", metavar="NAME=VALUE", multiple=True,
              help="Configure the scheduler otherwise than recorded; may be repeated.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path),
              help="Keep the replay as a trace there; it must not exist.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="How to print it.")  # fmt: skip
@opens_traces
@click.pass_context
def replay(
    ctx: click.Context, trace: Path, engine: str, env: str | None, texts: tuple[str, ...],
    out: Path | None, form: str, open_trace: OpenTrace,
) -> None:  # fmt: skip
    """Replay a recorded run on a real scheduler, without its model and without a GPU.

    The scheduler that is installed in ENV is built as the trace says, and is called as the engine
    called it: the same requests come and go between the same steps, and each step samples as many
    tokens. What it decides is recorded and compared with what was recorded.

    Another version, another policy or another setting decides otherwise at some step, which is
    named. From there on the recorded steps no longer fit, and time is carried on by what a step
    costs, fitted to the trace; its error is told beside it.

    Exits 0 where every step is the same, 4 where one is not.

    Examples:

    \b
      stepscope replay run.trace --python ~/vllm-0.33
      stepscope replay run.trace --python ~/vllm --set max_num_seqs=64 -o other.trace
    """
    from stepscope.analyzers.replay.rank_by_rank import replay as replayed
    from stepscope.analyzers.replay.recorded_settings import settings_of
    from stepscope.app.replay.launch import python_of, run

    settings, python = settings_of(texts), python_of(env)
    with tempfile.TemporaryDirectory(prefix="stepscope-replay-") as folder:
        into = out or Path(folder) / "replay.trace"
        _refuse_what_exists(into)
        with progress() as report:
            found = replayed(
                open_trace(trace, report), engine, settings, into,
                lambda script: run(script, python, into, report),
            )  # fmt: skip
        _print(found, form)
    ctx.exit(0 if found.is_same else DIVERGED)


def _refuse_what_exists(out: Path) -> None:
    from stepscope.ingest.errors import WriteError

    if out.exists():
        raise WriteError("there is something already", where=str(out), todo="choose a new path")


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
