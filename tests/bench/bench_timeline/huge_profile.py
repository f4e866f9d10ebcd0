"""A profile that is as large as one likes: a real one laid end to end in time, packed as gzip.

What is laid end to end as it stands packs to a hundredth. So every event of every copy has its own
time, and text in its arguments that nothing like it was before: letters at random, of which gzip
makes four fifths. That makes the file, and what is kept of its arguments, as large as it says.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from isal import igzip

LETTERS = np.frombuffer(
    bytes(each for each in range(0x20, 0x7F) if each not in b'"\\'), np.uint8
)  # fmt: skip
TIME = re.compile(rb'"ts":\s*([0-9]+)(\.[0-9]+)?')
ARGS = re.compile(rb'"args":\s*\{')
EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')


def write_huge(source: Path, out: Path, copies: int, letters: int) -> int:
    """Write so many copies of a gzipped profile, each event with so many letters more.

    Gives how many bytes of JSON are in it.
    """
    num_bytes = 0
    opened: Any = igzip  # it has no types
    with opened.open(out, "wb", compresslevel=1) as file:
        for part in parts(gzip.decompress(source.read_bytes()), copies, letters):
            num_bytes += file.write(part)
    return num_bytes


def parts(text: bytes, copies: int, letters: int) -> Iterator[bytes]:
    """The bytes of the file: what stands before the events, the copies, what stands behind."""
    found = EVENTS.search(text)
    assert found is not None
    whole = text.decode("utf-8", "surrogateescape")
    at = len(text[: found.end() - 1].decode("utf-8", "surrogateescape"))
    _, end = json.JSONDecoder(strict=False).raw_decode(whole, at)
    yield text[: found.end()]
    events = whole[at + 1 : end - 1].encode("utf-8", "surrogateescape")
    times = [int(each[1]) for each in TIME.finditer(events)]
    lasts_us = max(times) - min(times) + 1_000
    random = np.random.default_rng(1)
    for copy in range(copies):
        yield b"," * bool(copy) + _varied(events, copy * lasts_us, letters, random)
    yield whole[end - 1 :].encode("utf-8", "surrogateescape")


def _varied(events: bytes, later_us: int, letters: int, random: np.random.Generator) -> bytes:
    def later(found: re.Match[bytes]) -> bytes:
        return b'"ts": %d%s' % (int(found[1]) + later_us, found[2] or b"")

    moved = TIME.sub(later, events)
    if not letters:
        return moved
    pieces = ARGS.split(moved)
    drawn = random.integers(0, len(LETTERS), (len(pieces) - 1) * letters, np.uint8)
    noise = LETTERS[drawn].tobytes()
    woven = [pieces[0]]
    for place, piece in enumerate(pieces[1:]):
        comma = b"" if piece.lstrip().startswith(b"}") else b","
        woven += [b'"args": {"note": "', noise[place * letters : (place + 1) * letters], b'"',
                  comma, piece]  # fmt: skip
    return b"".join(woven)
