"""What is wrong, on stderr: a line for programs, and for people as wide as their terminal."""

from __future__ import annotations

import os
import sys

import click

from stepscope.app.printable import plain


def complain(message: str) -> None:
    """Say what is wrong: in one line, which goes on below itself where a terminal is narrower."""
    told = f"stepscope: {plain(message)}"
    for line in _wrapped(told) if sys.stderr.isatty() else [told]:
        click.echo(line, err=True)


def _wrapped(line: str) -> list[str]:
    from stepscope.app.cli.prompt.fitted import fitted
    from stepscope.app.present.blocks import Paragraph

    return fitted([Paragraph(line)], _columns())


def _columns() -> int:
    """Of the terminal that stderr is; 80 where it does not say."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80
