"""A directory for each start of an engine, below one parent; all ranks of a start share it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from stepscope.ingest.errors import ConfigError

START = "STEPSCOPE_START"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def new_start() -> str:
    """Name a start by the time (UTC) and this process, and tell the processes that it makes.

    To be called before the first of them, for each engine. The name is in the environment as
    `STEPSCOPE_START`, and every process that inherits it records into the same directory.
    """
    os.environ[START] = name = _name()
    return name


def start_paths(parent: Path) -> Iterator[Path]:
    """Give the directory of this start, and others for where somebody has recorded there before.

    Raises `ConfigError` where the environment names it by what is not a name of a file.
    """
    name = os.environ.get(START) or _name()
    if not _NAME.fullmatch(name):
        raise ConfigError(
            "the name of a start has letters, digits, dots, underscores and hyphens only",
            where=f"{START}={name[:80]!r}",
        )
    yield parent / f"{name}.trace"
    yield from (parent / f"{name}-{number}.trace" for number in count(2))


def _name() -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    when = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    return f"{when}.{rest // 1_000:06}Z-{os.getpid()}"
