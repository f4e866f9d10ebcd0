"""Runs lines one after the other, whoever they come from, and remembers what went wrong first."""

from __future__ import annotations

from collections.abc import Iterable

import click

from stepscope.app.cli.prompt.lines import commands_of
from stepscope.app.cli.prompt.printing import Printer
from stepscope.app.debug.commands import name_of, run
from stepscope.app.debug.commands.where_it_is import prompt_text
from stepscope.app.debug.debugger import Debugger
from stepscope.app.failures import told

REPEATED = ("step", "stepi", "back", "backi", "continue", "rc")
"""Commands that an empty line does again."""


class Loop:
    """A debugger that is told what to do line by line; `code` is that of the first failure."""

    def __init__(self, debugger: Debugger, printer: Printer) -> None:
        self.debugger = debugger
        self.printer = printer
        self.code = 0
        self.has_ended = False
        self._last = ""

    def run_all(self, lines: Iterable[str], *, stops_at_failure: bool) -> bool:
        """Run lines until one ends the session; False where one failed that had to be the end."""
        for line in commands_of(lines):
            self.printer.asked(prompt_text(self.debugger), line)
            if not self.run(line) and stops_at_failure:
                return False
            if self.has_ended:
                break
        return True

    def run(self, line: str) -> bool:
        """Run a line and print its answer; False where it failed, which ends nothing."""
        try:
            answer = run(self.debugger, line)
            self.printer.answered(line, answer)
        except BrokenPipeError:
            raise
        except Exception as error:
            self.printer.failed(line, error)
            self.code = self.code or told(error)[1]
            return False
        self.has_ended = answer.ends
        return True

    def run_typed(self, typed: str) -> None:
        """Run what a person typed: an empty line repeats the last move, Ctrl-C gives it up."""
        line = typed.strip() or self._last
        if not line:
            return
        try:
            self.run(line)
        except KeyboardInterrupt:
            click.echo("interrupted")
        self._last = line if name_of(line) in REPEATED else ""
