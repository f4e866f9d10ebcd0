"""`stepscope vllm`: what can be recorded of an installed vLLM."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from stepscope.app.printable import plain

if TYPE_CHECKING:
    from stepscope.ingest.attach.vllm.installed.doctor import Diagnosis


@click.group()
def vllm() -> None:
    """Check that vLLM can be recorded.

    vLLM records itself into FOLDER when STEPSCOPE_TRACE=FOLDER is set and stepscope is installed in
    the same environment.
    """


@vllm.command()
@click.option("--python", metavar="ENV",
              help="The virtual environment of vLLM, or its Python; by default, the one "
                   "that this command runs in.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="Output format.")  # fmt: skip
def doctor(python: str | None, form: str) -> int:
    """Show what of an installed vLLM would be recorded, what would not, and why.

    vLLM is neither started nor imported: its version and its names are looked up in the installed
    files. The command exits 0 when everything would be recorded, 1 when something would not be
    (with what to do about it), and 2 when the environment cannot be read.

    Examples:

    \b
      STEPSCOPE_TRACE=traces stepscope vllm doctor
      stepscope vllm doctor --python /opt/vllm/.venv
    """
    from stepscope.ingest.attach.vllm.installed.doctor import VARIABLE, diagnose

    found = diagnose(python, os.environ.get(VARIABLE))
    if form == "json":
        click.echo(json.dumps(found.as_dict(), indent=2))
    else:
        _print(found, os.environ.get(VARIABLE) or "not set")
    return 1 if found.troubles else 0


def _print(found: Diagnosis, trace: str) -> None:
    probed = found.probed
    facts = {
        "Python": f"{probed['python']}, {probed['executable']}",
        "vLLM": f"{probed['vllm'] or 'of no known version'}, {probed['folder']}"
        if probed["folder"]
        else "not installed",
        "stepscope": probed["stepscope"] or "not installed",
        "STEPSCOPE_TRACE": trace,
    }
    for name, told in facts.items():
        click.echo(f"{name:<16} {plain(told)}")
    if probed["folder"]:
        click.echo("records")
        for part, missing in found.missing.items():
            gone = f"; vLLM has no {', '.join(missing)}" if missing else ""
            click.echo(f"  {'no ' if missing else 'yes'}  {part}{plain(gone)}")
    for told in found.notes:
        click.echo(f"note: {plain(told)}")
    for told in found.troubles:
        click.echo(f"trouble: {plain(told)}")
    if not found.troubles:
        click.echo("vLLM would be recorded")
