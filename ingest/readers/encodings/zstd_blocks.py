"""Zstandard, inflated block by block: a block gives 128 KiB at most, whatever was sent.

The library inflates all that it is given at once, and a few bytes may become gigabytes. So frames
are cut at their blocks, each a call; where a file ends, all whole blocks before are there.

The format: https://www.rfc-editor.org/rfc/rfc8878
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"
WINDOW_LIMIT_BYTES = 128 << 20
_STEP_BYTES = 64 << 10
_RLE = 1


class Unzstd:
    """Iterates over what blocks hold; `damage` says afterwards why it ended early."""

    def __init__(self, steps: Callable[[], Iterator[bytes]]) -> None:
        self.damage: str | None = None
        self._bytes = _Bytes(steps())

    def __iter__(self) -> Iterator[bytes]:
        try:
            while not self._bytes.is_at_end():
                magic = self._bytes.take(4)
                if magic == MAGIC:
                    yield from self._frame()
                elif _is_skippable(magic):
                    self._bytes.skip(int.from_bytes(self._bytes.take(4), "little"))
                elif not self._bytes.is_cut_off:
                    self.damage = "what follows the zstd data is none"
                    return
        except zstandard.ZstdError as error:
            self.damage = f"the zstd data is damaged ({error})"
        if self._bytes.is_cut_off:
            self.damage = "the zstd data is cut off"

    def _frame(self) -> Iterator[bytes]:
        frame = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT_BYTES).decompressobj()
        descriptor = self._bytes.take(1)
        flags = int.from_bytes(descriptor)
        yield frame.decompress(MAGIC + descriptor + self._bytes.take(_num_header_bytes(flags)))
        is_last = False
        while not (is_last or self._bytes.is_cut_off):
            head = self._bytes.take(3)
            said = int.from_bytes(head, "little")
            is_last, kind, size = bool(said & 1), said >> 1 & 3, said >> 3
            body = self._bytes.take(1 if kind == _RLE else size)
            if not self._bytes.is_cut_off:
                yield frame.decompress(head + body)
        if flags & 4:
            frame.decompress(self._bytes.take(4))


class _Bytes:
    """Takes so many bytes from steps of any size; `is_cut_off` when there were fewer."""

    def __init__(self, steps: Iterator[bytes]) -> None:
        self.is_cut_off = False
        self._steps = steps
        self._window = b""
        self._at = 0

    def is_at_end(self) -> bool:
        if self._at == len(self._window):
            self._window, self._at = next(self._steps, b""), 0
        return not self._window

    def take(self, num: int) -> bytes:
        parts = []
        while num and not self.is_at_end():
            part = self._window[self._at : self._at + num]
            self._at += len(part)
            num -= len(part)
            parts.append(part)
        self.is_cut_off |= num > 0
        return b"".join(parts)

    def skip(self, num: int) -> None:
        while num and not self.is_cut_off:
            num -= len(self.take(min(num, _STEP_BYTES)))


def _is_skippable(magic: bytes) -> bool:
    return magic[1:] == b"\x2a\x4d\x18" and magic[0] >> 4 == 5


def _num_header_bytes(flags: int) -> int:
    """How long a frame's header is behind the byte that describes it: window, dictionary, size."""
    is_single = flags >> 5 & 1
    return (1 - is_single) + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
