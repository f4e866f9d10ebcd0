"""Where a command writes: what is there already is overwritten only with `--force`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.storage.store import holds_trace


def may_overwrite(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that writes a trace the option `--force`, as its argument `force`."""
    return click.option("--force", is_flag=True, help="Overwrite an existing trace.")(command)


def refuse_existing(path: Path, *inputs: Path | None, force: bool) -> None:
    """Raise ConfigError where something is at `path` that is not to be overwritten.

    That is anything; with `force` only what the command reads itself, its `inputs`, and a folder
    that holds something else than a trace.
    """
    _refuse_place(path, *inputs)
    if not path.exists():
        return
    if not force:
        raise ConfigError("it already exists", where=str(path), todo="name another, or add --force")
    if path.is_dir() and not holds_trace(path):
        raise ConfigError("it is not a trace, so --force does not overwrite it", where=str(path))


def make_room(path: Path, *inputs: Path | None, force: bool) -> None:
    """Remove the trace at `path`, for who writes into a new folder alone.

    Raises ConfigError where `refuse_existing` does, or where a file is in the way.
    """
    refuse_existing(path, *inputs, force=force)
    if path.is_file():
        raise ConfigError("it is not a trace, so --force does not overwrite it", where=str(path))
    if path.exists():
        shutil.rmtree(path)


def refuse_existing_file(path: Path, *inputs: Path, force: bool) -> None:
    """Raise ConfigError where a file is not to be written at `path`.

    That is where anything is, and with `force` a folder or what the command reads itself.
    """
    _refuse_place(path, *inputs)
    if path.is_dir():
        raise ConfigError("it is a folder", where=str(path), todo="name a file")
    if path.exists() and not force:
        raise ConfigError("it already exists", where=str(path), todo="name another, or add --force")


def _refuse_place(path: Path, *inputs: Path | None) -> None:
    """Raise ConfigError where an output would be an input, or a part of a trace."""
    if path.resolve() in (each.resolve() for each in inputs if each):
        raise ConfigError(
            "the output would overwrite an input", where=str(path), todo="choose another name"
        )
    folder = path.resolve().parent
    if folder.is_dir() and holds_trace(folder):
        raise ConfigError("it lies in a trace", where=str(path), todo="choose another folder")


def written_whole(path: Path, text: str | bytes) -> None:
    """Write a file beside its place and put it there, so that nobody ever sees half of it.

    Raises ConfigError where it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(text if isinstance(text, bytes) else text.encode())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        what = f"cannot be written: {error.strerror or error}"
        raise ConfigError(what, where=str(path), todo="choose another place") from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
