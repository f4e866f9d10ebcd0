"""What is shown as a file: never over one that is there."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

LONGEST = 80


def saved_new(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file of this name, or with a number before its ending where it is there already.

    What a trace is called may hold anything: letters, digits, `.`, `_` and `-` stay. Raises OSError
    where nothing can be written.
    """
    stem, _, ending = name.rpartition(".")
    plain = re.sub(r"[^\w.-]+", "-", stem)[:LONGEST].strip(".-") or "view"
    for number in count(1):
        file = folder / (f"{plain}.{ending}" if number == 1 else f"{plain}-{number}.{ending}")
        try:
            with file.open("xb") as opened:
                text = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
                opened.write(text)
        except FileExistsError:
            continue
        return file
    raise AssertionError
