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
    """Look after the recording of vLLM.

    STEPSCOPE_TRACE=FOLDER switches it on, in each process of vLLM; stepscope has to be installed
    in the same environment.
    """


@vllm.command()
@click.option("--python", metavar="ENV",
              help="The Python, or the virtual environment, that vLLM runs in; by default, the one "
                   "that this command runs in.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="How to print it.")  # fmt: skip
def doctor(python: str | None, form: str) -> int:
    """Say what of vLLM would be recorded, what would not, and why.

    vLLM is not started and not even imported: versions and names are looked up in what is
    installed. Exits 0 where all that stepscope knows of would be recorded, 1 where anything
    stands in the way (each with what to do), 2 where the Python cannot be asked.

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
