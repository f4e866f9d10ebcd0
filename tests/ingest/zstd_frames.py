"""Frames of zstd, as tests want them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def framed(content: bytes, *, is_sized: bool = True, level: int = 3) -> bytes:
    """One frame, with a checksum, and its size in its header where that is asked for."""
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.checksum_flag: 1,
        zstd.CompressionParameter.content_size_flag: is_sized,
    }
    return zstd.compress(content, options=options)


def streamed(content: bytes) -> bytes:
    """One frame, begun before its size was known."""
    frame = zstd.ZstdCompressor(level=19)
    return frame.compress(content) + frame.flush()


def in_blocks(parts: Sequence[bytes]) -> list[bytes]:
    """One frame with a checksum, of which each part is as many blocks as it takes."""
    options: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}
    frame = zstd.ZstdCompressor(options=options)
    *first, last = parts
    blocks = [frame.compress(part, zstd.ZstdCompressor.FLUSH_BLOCK) for part in first]
    return [*blocks, frame.compress(last, zstd.ZstdCompressor.FLUSH_FRAME)]
