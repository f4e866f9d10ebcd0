"""How an answer of the debugger is printed: for people in lines, for programs as JSON."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any, Protocol

import click
import msgspec

from stepscope.app.cli.complaints import complain
from stepscope.app.cli.prompt.fitted import fitted
from stepscope.app.debug.commands.answer import Answer
from stepscope.app.failures import told
from stepscope.app.printable import plain
from stepscope.ingest.errors import StepscopeError


class Printer(Protocol):
    """Prints what was typed, what it answers, and what was wrong with it."""

    def asked(self, prompt: str, line: str) -> None:
        """Print a line that nobody saw being typed."""
        ...

    def answered(self, line: str, answer: Answer) -> None:
        """Print an answer."""
        ...

    def failed(self, line: str, error: Exception) -> None:
        """Print why a line has no answer."""
        ...


class AsText:
    """Lines as wide as the terminal, 80 columns where there is none; failures go to stderr."""

    def asked(self, prompt: str, line: str) -> None:
        """Print the line behind the prompt, so that a log reads as if it had been typed."""
        click.echo(plain(f"{prompt}{line}"))

    def answered(self, line: str, answer: Answer) -> None:
        """Print the blocks of an answer."""
        width = shutil.get_terminal_size().columns
        for each in fitted(answer.blocks, width):
            click.echo(each)

    def failed(self, line: str, error: Exception) -> None:
        """Print what is wrong, in its place between the answers."""
        sys.stdout.flush()
        complain(told(error)[0])


class AsJson:
    """An object in a line for each line that was asked: its facts, or what was wrong with it."""

    def asked(self, prompt: str, line: str) -> None:
        """Print nothing: the line stands beside its answer."""

    def answered(self, line: str, answer: Answer) -> None:
        """Print the facts of an answer."""
        _write({"command": line, "answer": answer.facts})

    def failed(self, line: str, error: Exception) -> None:
        """Print what is wrong, where, and what to do next."""
        what, code = told(error)
        parts = {"what": what}
        if isinstance(error, StepscopeError):
            parts = {"what": error.what, "where": error.where, "todo": error.todo}
        _write({"command": line, "error": {**parts, "exit_code": code}})


def _write(facts: dict[str, Any]) -> None:
    """Write ASCII alone: a name from a trace steers no terminal; what is no number is null."""
    finite = json.loads(msgspec.json.encode(facts, enc_hook=str))
    click.echo(json.dumps(finite))
    sys.stdout.flush()
