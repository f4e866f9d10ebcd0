"""The page of the command line: what each command's `--help` says."""

from __future__ import annotations

from collections.abc import Iterator

import click

from stepscope.app.cli.main import cli

WIDTH = 100
HEAD = """# Commands

What `--help` says of each, made from the commands by `make docs`. `TRACE` is any file or folder
that stepscope reads: [formats](../formats.md).
"""


def commands_page() -> str:
    """Return the page: a heading and the help of each command, groups before what is in them."""
    context = click.Context(cli, info_name="stepscope", **cli.context_settings)
    parts = [_part(context)]
    parts += [_part(each) for each in _below(context, cli)]
    return "\n".join([HEAD, *parts])


def _below(parent: click.Context, group: click.Group) -> Iterator[click.Context]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        context = click.Context(command, parent, info_name=name)
        yield context
        if isinstance(command, click.Group):
            yield from _below(context, command)


def _part(context: click.Context) -> str:
    context.terminal_width = WIDTH
    return f"## {context.command_path}\n\n```text\n{context.get_help()}\n```\n"
