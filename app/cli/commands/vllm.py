"""`stepscope vllm`: what can be recorded of an installed vLLM."""

from __future__ import annotations

import click

from stepscope.app.cli.doctor import doctor_of


@click.group()
def vllm() -> None:
    """Check that vLLM can be recorded.

    vLLM records itself into FOLDER when STEPSCOPE_TRACE=FOLDER is set and stepscope is installed in
    the same environment.
    """


vllm.add_command(doctor_of("vllm", "vLLM"))
