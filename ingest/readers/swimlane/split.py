"""A JSON file read whole, or as far as it goes.

A file that was cut off, or that is garbled somewhere, is mended: what comes after the last whole
value is left out and the brackets that stand open are closed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from stepscope.ingest.errors import LimitExceeded, TruncatedTrace
from stepscope.ingest.limits import DEFAULTS, Limits, raised_by
from stepscope.ingest.readers.encodings.inflate import Inflater
from stepscope.ingest.readers.text.letters import with_whole_letters

# Strings are passed over; one that is not closed takes the rest of the file.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},]', re.DOTALL)
_CLOSES = {"[": "]", "{": "}"}


def load_json(path: Path, limits: Limits = DEFAULTS) -> tuple[Any, str | None]:
    """Read a JSON file; gives its value, and a sentence when it had to be mended.

    Raises `TraceError` when it cannot be read, `LimitExceeded` when it is too deep,
    `TruncatedTrace` when nothing in it is whole.
    """
    text, ended = _text(path, limits)
    try:
        return json.loads(text), f"{path.name}: {ended}; all of it is kept" if ended else None
    except RecursionError:
        raise LimitExceeded("nested too deeply", where=str(path)) from None
    except ValueError as error:
        end = getattr(error, "pos", len(text))
    ended = f"{ended or 'damaged or cut off'} after {end} characters"
    try:
        found = json.loads(_mended(text[:end]))
    except (ValueError, RecursionError):
        what = f"not JSON, or {ended}, before anything whole"
        raise TruncatedTrace(what, where=str(path), todo="record or copy it again") from None
    return found, f"{path.name}: {ended}; all before is kept"


def _text(path: Path, limits: Limits) -> tuple[str, str | None]:
    """What a file holds, as far as it may be read whole, and why that is not all."""
    blocks = Inflater(path, limits=limits)
    found = bytearray()
    for block in blocks:
        found += block
        if len(found) > limits.whole:
            del found[limits.whole :]
            beyond = f"more than {limits.whole:,} bytes ({raised_by('whole')}), cut"
            return _decoded(found), beyond
    return _decoded(found), blocks.damage


def _decoded(content: bytearray) -> str:
    return with_whole_letters(content.decode("utf-8", "replace").removeprefix("\ufeff"))


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
