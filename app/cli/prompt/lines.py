"""Where lines come from that nobody types at a prompt: a script, or what is piped in."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from stepscope.ingest.errors import ConfigError

LONGEST = 1 << 16


def of_script(path: Path) -> list[str]:
    """The lines of a script; raises ConfigError for one that is no text, and OSError."""
    try:
        return [_checked(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ConfigError("the script is not UTF-8 text", where=str(path)) from None


def of_pipe() -> Iterator[str]:
    """Lines from stdin, each as soon as it is there; ConfigError for what is no text."""
    try:
        for line in sys.stdin:
            yield _checked(line.rstrip("\r\n"))
    except UnicodeDecodeError:
        raise ConfigError("what was piped in is not UTF-8 text") from None


def commands_of(lines: Iterable[str]) -> Iterator[str]:
    """The lines that ask something: none that is empty or a comment."""
    return (line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _checked(line: str) -> str:
    if len(line) > LONGEST:
        raise ConfigError(f"a line has more than {LONGEST:,} characters")
    return line
