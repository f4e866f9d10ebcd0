"""What the columns of measurements over time are called: as vLLM's log calls the same, or as is.

t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct

The format: LLMServingSim's benchmark of vLLM, and whatever begins with a column of seconds and has
one of throughput (github.com/casys-kaist/LLMServingSim).
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

TIMES = ("t", "time", "time_s", "seconds", "elapsed", "elapsed_s")
_HEADER = re.compile(rb"[ \w,.()%/\"-]{1,4096}")
_KNOWN = {
    "prompt_throughput": ("Avg prompt throughput", "tokens/s"),
    "gen_throughput": ("Avg generation throughput", "tokens/s"),
    "generation_throughput": ("Avg generation throughput", "tokens/s"),
    "running": ("Running", "reqs"),
    "waiting": ("Waiting", "reqs"),
    "kv_cache_pct": ("GPU KV cache usage", "%"),
}
_LIMIT_CHARS = 64


@dataclass(frozen=True, slots=True)
class Series:
    """A column: the counter that it is, and its unit where that is known."""

    name: str
    unit: str | None


def series_of(header: bytes) -> list[Series]:
    """The columns behind that of times; none where the line is no header of measurements."""
    line = header.partition(b"\n")[0].strip()
    if not _HEADER.fullmatch(line) or b"throughput" not in line:
        return []
    first, *names = cells(line)
    is_known = first.lower() in TIMES and all(name[:1].isalpha() for name in names)
    return _told_apart(map(_series, names)) if is_known else []


def cells(line: bytes) -> list[str]:
    """The cells of a line; none where it cannot be read."""
    try:
        found = next(csv.reader([line.decode("utf-8", "replace")]), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in found]


def _series(column: str) -> Series:
    name, unit = _KNOWN.get(column, (column[:_LIMIT_CHARS], None))
    return Series(name, unit)


def _told_apart(columns: Iterable[Series]) -> list[Series]:
    """Series of which no two have one name: the second column of it is `name 2`."""
    num_of: Counter[str] = Counter()
    found = []
    for each in columns:
        num_of[each.name] += 1
        num = num_of[each.name]
        found.append(each if num == 1 else replace(each, name=f"{each.name} {num}"))
    return found
