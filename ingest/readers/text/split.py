"""Lines of a log, whatever wrote or forwarded it: any line end, coloured, packed in JSON, torn."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from stepscope.ingest.limits import DEFAULTS, raised_by

NO_STAMP = ""
NO_END = "last line read without its end"
SNIFF_BYTES = 64 << 20
"""How far into a text a line is looked for that tells its format: a server says much before."""
_BOM = codecs.BOM_UTF8
# What shells and editors of Windows write; the two bytes say in which order those of a letter are.
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]")
# What a container runtime, or journald as JSON, calls the line and the time at which it came.
_PACKED = (
    ("log", "time"), ("MESSAGE", "__REALTIME_TIMESTAMP"), ("message", "timestamp"),
    ("message", "asctime"), ("message", "@timestamp"), ("message", "time"), ("msg", "ts"),
    ("msg", "time"), ("event", "timestamp"),
)  # fmt: skip
# Seconds, milliseconds and microseconds of our time: what a number stands for by its size.
_UNITS = ((1e11, 1_000_000), (1e14, 1_000), (1e17, 1))
# Who wrote a line, told by what forwards the lines of several.
_ORIGINS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\[(pod/[\w.-]{1,253}/[\w.-]{1,253})\] ",  # kubectl logs --prefix
        r"([\w.-]{1,128}) {0,64}\| ",  # docker compose
        r"\[(\d{4,5})\] (?=slot|\d{1,6}\.\d\d\.)",  # the router of llama.cpp: a model's port
        r"[A-Z][a-z]{2} [ \d]\d [\d:]{8} ([\w.-]{1,253} [\w./@-]{1,128}\[\d{1,9}\]): ",  # journald
        r"([a-z\d](?:[a-z\d-]{0,200})-[a-z\d]{5} [a-z\d-]{1,63}) (?=\S)",  # stern
    )
)


class Lines:
    """Iterates over the lines in blocks of bytes, with whether each has its end.

    Empty lines are left out. `num_lines` were given, and `num_too_long`, of more than `most_bytes`,
    not.
    """

    def __init__(self, blocks: Iterable[bytes], most_bytes: int = DEFAULTS.line) -> None:
        self.most_bytes = most_bytes
        self.num_lines = 0
        self.num_too_long = 0
        self._blocks = as_utf8(blocks)

    def left_out(self) -> dict[str, int]:
        """Count the lines that are too long, for the report."""
        what = f"lines of more than {self.most_bytes:,} bytes ({raised_by('line')})"
        return {what: self.num_too_long} if self.num_too_long else {}

    def __iter__(self) -> Iterator[tuple[bytes, bool]]:
        rest = b""
        for block in self._blocks:
            *lines, rest = _split(rest + block)
            yield from self._kept(lines, is_whole=True)
            if len(rest) > self.most_bytes:
                rest = rest[: self.most_bytes + 1]  # enough to know it by; the rest is not kept
        yield from self._kept([rest], is_whole=False)

    def _kept(self, lines: list[bytes], *, is_whole: bool) -> Iterator[tuple[bytes, bool]]:
        for line in lines:
            if len(line) > self.most_bytes:
                self.num_too_long += 1
            elif line:
                self.num_lines += 1
                yield line, is_whole


def as_utf8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks of a text in UTF-8 without the mark that it may begin with, from UTF-16 too."""
    each = iter(blocks)
    first = next(each, b"")
    if encoding := _UTF16.get(first[:2]):
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        for block in chain((first[2:],), each):
            yield decoder.decode(block).encode("utf-8", "replace")
    else:
        yield first.removeprefix(_BOM)
        yield from each


def is_text(head: bytes) -> bool:
    """Whether it may be the beginning of a text."""
    return bool(head) and (head[:2] in _UTF16 or b"\0" not in head)


def _split(window: bytes) -> list[bytes]:
    """The lines of a window, the last one without its end, which may be empty."""
    lines = window.splitlines()
    if not lines or window.endswith((b"\n", b"\r")):
        lines.append(b"")
    return lines


def text_of(line: bytes) -> tuple[str, str]:
    """A line as its writer wrote it, and the time that whoever packed it in JSON gave it."""
    text = _COLOUR.sub("", line.decode("utf-8", "replace"))
    if not text.startswith("{"):
        return text, NO_STAMP
    try:
        packed = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text, NO_STAMP
    said = next((name for name, _ in _PACKED if isinstance(packed.get(name), str)), None)
    if said is None:
        return text, NO_STAMP
    stamps = (_stamp(packed.get(time)) for name, time in _PACKED if name == said)
    return _COLOUR.sub("", packed[said]).strip(), next(filter(None, stamps), NO_STAMP)


def _stamp(value: object) -> str:
    """A time as text; of a number, microseconds since 1970, whatever its unit must be."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e17:
        return NO_STAMP
    unit = next(unit for most, unit in _UNITS if value < most)
    return f"{round(value * unit):016d}"


def origin_of(text: str) -> str:
    """Who wrote a line, where what forwarded it says so; else empty."""
    for pattern in _ORIGINS:
        if match := pattern.match(text):
            return match[1]
    return ""
