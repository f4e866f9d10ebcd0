"""Iteration statistics of TensorRT-LLM in JSON that is spread over lines, as one line each.

What is saved of them is an array as often as lines, is printed with indents, or stands within an
object of something else. Each object that holds an iteration becomes a line of its own, so that it
is read as all other lines are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import msgspec

from stepscope.ingest.errors import LimitExceeded
from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.text.letters import with_whole_letters

STATISTIC = "iterLatencyMS"
_ITERATION_LOG = b"'num_ctx_requests': "
"""In a log of iterations statistics are lines among its own."""
LIMIT_DEPTH = 6
MOST_TORN = 1_000
"""Brackets that are never closed are looked into; so many of them, and then no more."""


def is_spread(head: bytes) -> bool:
    """Tell JSON that holds iterations and is not an object or array a line."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] not in (b"{", b"[") or f'"{STATISTIC}"'.encode() not in start:
        return False
    if _ITERATION_LOG in start:
        return False
    try:
        return not msgspec.json.decode(start.splitlines()[0])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True


def statistics_in(value: object, depth: int = 0) -> Iterator[dict[str, object]]:
    """The objects that hold an iteration, in whatever lists and objects they are."""
    if isinstance(value, dict) and STATISTIC in value:
        yield value
    elif isinstance(value, dict | list) and depth < LIMIT_DEPTH:
        for part in value.values() if isinstance(value, dict) else value:
            yield from statistics_in(part, depth + 1)


def documents(blocks: Iterable[bytes], limits: Limits) -> Iterator[tuple[bytes, bool]]:
    """Each iteration as a line, with whether it is whole; at last, that something was cut off.

    Raises `LimitExceeded` where there is more than can be read whole.
    """
    text = _text(blocks, limits)
    decoder = json.JSONDecoder()
    at, num_torn = text.find("{"), 0
    while at >= 0 and num_torn <= MOST_TORN:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found, end, num_torn = None, at + 1, num_torn + 1
        for each in statistics_in(found):
            yield msgspec.json.encode(each), True
        at = text.find("{", end)
    if num_torn:
        yield STATISTIC.encode(), False


def _text(blocks: Iterable[bytes], limits: Limits) -> str:
    whole = bytearray()
    for block in blocks:
        whole += block
        if len(whole) > limits.whole:
            raise LimitExceeded(f"more than {limits.whole:,} bytes", todo=raised_by("whole"))
    return with_whole_letters(whole.decode("utf-8", "replace"))
