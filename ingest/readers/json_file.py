"""A JSON file read whole, or as far as it goes.

A file that was cut off, or that is garbled somewhere, is mended: what comes after the last whole
value is left out and the brackets that stand open are closed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stepscope.ingest.errors import LimitExceeded, TraceError, TruncatedTrace

LIMIT_BYTES = 512 << 20
# Strings are passed over; one that is not closed takes the rest of the file.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},]', re.DOTALL)
_CLOSES = {"[": "]", "{": "}"}


def load_json(path: Path) -> tuple[Any, str | None]:
    """Read a JSON file; gives its value, and a sentence when it had to be mended.

    Raises `TraceError` when it cannot be read, `LimitExceeded` when it is too large or too deep,
    `TruncatedTrace` when nothing in it is whole.
    """
    text = _text(path)
    try:
        return json.loads(text), None
    except RecursionError:
        raise LimitExceeded("nested too deeply", where=str(path)) from None
    except ValueError as error:
        end = getattr(error, "pos", len(text))
    try:
        found = json.loads(_mended(text[:end]))
    except (ValueError, RecursionError):
        what = f"not JSON, or cut off after {end} characters, before anything whole"
        raise TruncatedTrace(what, where=str(path), todo="record or copy it again") from None
    return found, f"{path.name}: damaged or cut off after {end} characters; all before is kept"


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LIMIT_BYTES:
            what = f"larger than {LIMIT_BYTES >> 20} MiB"
            raise LimitExceeded(what, where=str(path))
        return path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError as error:
        raise TraceError(f"cannot be read: {error.strerror}", where=str(path)) from None


def _mended(text: str) -> str:
    """Cut after the last bracket or before the last comma, and close what stands open there."""
    open_brackets: list[str] = []
    cut = 0
    for match in _TOKEN.finditer(text):
        mark = match.group()
        if mark.startswith('"'):
            continue
        cut = match.start() if mark == "," else match.end()
        if mark in _CLOSES:
            open_brackets.append(mark)
        elif mark != "," and open_brackets:
            open_brackets.pop()
    return text[:cut] + "".join(_CLOSES[bracket] for bracket in reversed(open_brackets))
