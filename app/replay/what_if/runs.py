"""Runs of a trace with changes, each in a process of its own: one at a time, kept until the end."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Condition, Thread
from typing import TYPE_CHECKING

import msgspec

from stepscope.app.failures import told
from stepscope.app.replay.what_if.asked import Asked
from stepscope.app.replay.what_if.came import Came, Said
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

if TYPE_CHECKING:
    from stepscope.app.replay.what_if.choices import Choices

CHILD = f"{__package__}.child"
BEGINS = "starting a process"
CANCELLED = "it was cancelled"
LONGEST_NAME = 80


@dataclass(slots=True)
class Run:
    """A run that was asked for: `failed` says why nothing came of it, `came` what did.

    While both are not there it is under way: `what` it is at, and how much of that is `done`.
    """

    asked: Asked
    out: Path
    command: str
    began_s: float
    what: str = BEGINS
    done: int = 0
    total: int | None = None
    failed: str = ""
    came: Came | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether nothing has come of it yet."""
        return self.came is None and not self.failed


class WhatIfs:
    """What was asked of one trace: any thread may ask, see how far it is, and cancel.

    What a run records is kept in a temporary folder, for whoever goes on with it.
    """

    def __init__(self, trace: Trace, clock: Callable[[], float] = time.monotonic) -> None:
        self.trace = trace
        self.clock = clock
        self._changed = Condition()
        self._runs: dict[str, Run] = {}
        self._folder: Path | None = None
        atexit.register(self.close)

    @cached_property
    def choices(self) -> Choices:
        """What can be asked; ConfigError says why nothing can."""
        from stepscope.app.replay.what_if.choices import choices_of  # noqa: PLC0415 - most who look ask for no run, and the engine takes long to import

        return choices_of(self.trace)

    def start(self, words: str) -> Run:
        """Begin a run; one that was asked for before and did not fail is not begun again.

        Raises ConfigError where the words ask for what is not there, and where another run is under
        way.
        """
        wanted = self.choices.asked(words)
        with self._changed:
            before = self._runs.get(wanted.words)
            if before and not before.failed:
                return before
            if now := self._under_way():
                raise ConfigError(f"{now.asked.words} is still being run, and one is run at a time",
                                  todo="wait for it, or cancel it")  # fmt: skip
            self._runs.pop(wanted.words, None)
            run = self._runs[wanted.words] = self._begun(wanted)
        if run.process:
            Thread(target=self._follow, args=(run,), daemon=True).start()
        return run

    def of(self, words: str) -> Run | None:
        """The run that words ask for, in whatever order; None where it was not begun.

        Raises ConfigError as `start` does.
        """
        wanted = self.choices.asked(words)
        with self._changed:
            return self._runs.get(wanted.words)

    @property
    def last(self) -> Run | None:
        """The run that is under way, else what was begun last; None before any."""
        with self._changed:
            return self._under_way() or next(reversed(self._runs.values()), None)

    @property
    def under_way(self) -> Run | None:
        """The run that is under way."""
        with self._changed:
            return self._under_way()

    def cancel(self) -> None:
        """End the run that is under way; what it had recorded is gone."""
        with self._changed:
            if now := self._under_way():
                now.failed = CANCELLED
                _end(now)
                self._changed.notify_all()

    def wait(self, run: Run, seconds: float) -> None:
        """Wait until a run says something, at most so long."""
        with self._changed:
            if run.is_under_way:
                self._changed.wait(seconds)

    def close(self) -> None:
        """End what is under way; a folder in which nothing was kept goes."""
        atexit.unregister(self.close)
        self.cancel()
        if self._folder:
            with suppress(OSError):
                self._folder.rmdir()

    def _under_way(self) -> Run | None:
        return next((each for each in self._runs.values() if each.is_under_way), None)

    def _begun(self, wanted: Asked) -> Run:
        """A run and its process; one that nothing can be written for, or started, has failed."""
        assert self.trace.path is not None
        command = wanted.command(self.trace.path, _name_of(wanted), self.choices.kind)
        run = Run(wanted, Path(_name_of(wanted)), command, self.clock())
        path = self.trace.path.resolve()
        try:
            run.out = self._room(wanted)
            run.process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-P", "-m", CHILD, str(path), wanted.words, str(run.out)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            run.failed = told(error)[0]
        return run

    def _room(self, wanted: Asked) -> Path:
        """Where the run is recorded to, in a folder that is made with the first."""
        if self._folder is None or not self._folder.is_dir():
            self._folder = Path(tempfile.mkdtemp(prefix="stepscope-what-if-"))
        out = self._folder / _name_of(wanted)
        while any(each.out == out for each in self._runs.values()):
            out = out.with_name(f"again-{out.name}")
        shutil.rmtree(out, ignore_errors=True)
        return out

    def _follow(self, run: Run) -> None:
        """Take in what the process says, until it ends."""
        assert run.process is not None
        failed = ""
        with run.process as process:
            for line in process.stdout or ():
                said = _read(line)
                failed = said.failed or failed
                with self._changed:
                    _take(run, said)
                    self._changed.notify_all()
        failed = failed or f"its process ended with {process.returncode} and said nothing"
        if run.came is None:
            shutil.rmtree(run.out, ignore_errors=True)
        with self._changed:
            run.failed = run.failed or ("" if run.came else failed)
            self._changed.notify_all()


def _name_of(wanted: Asked) -> str:
    """What the trace of a run is called: after what is different in it."""
    name = re.sub(r"[^\w.,=+-]+", "_", wanted.words.replace("--", ""))[:LONGEST_NAME]
    return f"{name}.trace"


_SAID = msgspec.json.Decoder(Said)


def _read(line: bytes) -> Said:
    """What a line says; nothing where it is none, as a library may print what it likes."""
    try:
        return _SAID.decode(line)
    except msgspec.DecodeError:
        return Said()


def _take(run: Run, said: Said) -> None:
    if not run.failed:
        run.came = said.came
    if said.what:
        run.what, run.done, run.total = said.what, said.done, said.total


def _end(run: Run) -> None:
    if run.process:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(run.process.pid, signal.SIGKILL)
