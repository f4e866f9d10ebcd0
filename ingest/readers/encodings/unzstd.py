"""What zstd holds: frames, one behind the other. https://www.rfc-editor.org/rfc/rfc8878 ."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from stepscope.ingest.readers.encodings.compressed import BLOCK_BYTES, Damaged, Inflated, Steps

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x28\xb5\x2f\xfd"
_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 27}
"""128 MiB, as much as its own command takes without being asked."""


def unzstd(steps: Steps) -> Inflated:
    """Return what the frames of a file hold."""
    return Inflated(steps, _frames, _frames)


def _frames(steps: Iterator[bytes]) -> Iterator[bytes]:
    frame: zstd.ZstdDecompressor | None = None
    rest = b""
    for step in steps:
        rest += step
        while frame or len(rest) >= len(MAGIC):
            frame = frame or _begun(rest)
            try:
                yield frame.decompress(rest, BLOCK_BYTES)
            except zstd.ZstdError as damage:
                raise Damaged(f"the zstd data is damaged ({damage})") from damage
            rest = frame.unused_data
            is_done = frame.eof or frame.needs_input
            frame = None if frame.eof else frame
            if is_done and not rest:
                break
    if frame or rest:
        raise Damaged("the zstd data is cut off")


def _begun(start: bytes) -> zstd.ZstdDecompressor:
    is_skippable = start[1:4] == b"\x2a\x4d\x18" and start[0] >> 4 == 5
    if not (start.startswith(MAGIC) or is_skippable):
        raise Damaged("what follows the zstd data is none")
    return zstd.ZstdDecompressor(options=_WINDOW)
