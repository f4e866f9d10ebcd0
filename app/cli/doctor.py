"""The `doctor` of an engine: what of an installed one would be recorded, what would not, and why.

A group of each engine's has it (`commands/vllm.py`, `commands/sglang.py`).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from stepscope.app.printable import plain

if TYPE_CHECKING:
    from stepscope.ingest.attach.installed.doctor import Diagnosis

HELP = """Show what of an installed {title} would be recorded, what would not, and why.

    {title} is neither started nor imported: its version and its names are looked up in the
    installed files. The command exits 0 when everything would be recorded, 1 when something would
    not be (with what to do about it), and 2 when the environment cannot be read.

    Examples:

    \b
      STEPSCOPE_TRACE=traces stepscope {name} doctor
      stepscope {name} doctor --python /opt/{name}/.venv
    """


def doctor_of(name: str, title: str) -> click.Command:
    """Make the command for an engine, which is looked up by its name when it is called."""

    @click.command("doctor", help=HELP.format(name=name, title=title))
    @click.option("--python", metavar="ENV",
                  help=f"The virtual environment of {title}, or its Python; by default, the one "
                       "that this command runs in.")  # fmt: skip
    @click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
                  show_default=True, help="Output format.")  # fmt: skip
    def doctor(python: str | None, form: str) -> int:
        from stepscope.ingest.attach.installed.doctor import VARIABLE, diagnose
        from stepscope.ingest.attach.installed.engines import ENGINES

        (engine,) = (each for each in ENGINES if each.name == name)
        found = diagnose(engine, python, os.environ.get(VARIABLE))
        if form == "json":
            click.echo(json.dumps(found.as_dict(), indent=2))
        else:
            _print(found, os.environ.get(VARIABLE) or "not set")
        return 1 if found.troubles else 0

    return doctor


def _print(found: Diagnosis, trace: str) -> None:
    probed, title = found.probed, found.engine.title
    facts = {
        "Python": f"{probed['python']}, {probed['executable']}",
        title: f"{probed['version'] or 'of no known version'}, {probed['folder']}"
        if probed["folder"]
        else "not installed",
        "stepscope": probed["stepscope"] or "not installed",
        "STEPSCOPE_TRACE": trace,
    }
    for name, told in facts.items():
        click.echo(f"{name:<16} {plain(told)}")
    if probed["folder"]:
        _print_parts(found)
    for told in found.notes:
        click.echo(f"note: {plain(told)}")
    for told in found.troubles:
        click.echo(f"trouble: {plain(told)}")
    if not found.troubles:
        click.echo(f"{title} would be recorded")


def _print_parts(found: Diagnosis) -> None:
    click.echo("records")
    for part, missing in found.missing.items():
        gone = f"; {found.engine.title} has no {', '.join(missing)}" if missing else ""
        click.echo(f"  {'no ' if missing else 'yes'}  {part}{plain(gone)}")
    click.echo("never records")
    for part in found.engine.never:
        click.echo(f"       {part}")
