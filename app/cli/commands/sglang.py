"""`stepscope sglang`: what can be recorded of an installed SGLang."""

from __future__ import annotations

import click

from stepscope.app.cli.doctor import doctor_of


@click.group()
def sglang() -> None:
    """Check that SGLang can be recorded.

    SGLang records itself into FOLDER when STEPSCOPE_TRACE=FOLDER is set and stepscope is installed
    in the same environment.
    """


sglang.add_command(doctor_of("sglang", "SGLang"))
