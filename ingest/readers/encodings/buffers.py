"""What a file holds, read ahead into buffers that may begin with what is left of the one before."""

from __future__ import annotations

import numpy as np

from stepscope.ingest.readers.encodings.compressed import BLOCK_BYTES
from stepscope.ingest.readers.encodings.inflate import Contents


class Buffers:
    """Reads contents on: `num_bytes` so far, and nothing follows where `has_ended`."""

    def __init__(self, contents: Contents) -> None:
        self.num_bytes = 0
        self.has_ended = False
        self._contents = contents

    def more(self, num_bytes: int = 1, before: bytes | memoryview = b"") -> memoryview:
        """Return what was before and what comes next: so many bytes of it or more, if there are."""
        begin = end = len(before)
        # Not zeroed, as bytearray's would be: all of it is written.
        buffer = np.empty(begin + max(num_bytes, BLOCK_BYTES), np.uint8).data
        buffer[:begin] = before
        while end < begin + num_bytes and not self.has_ended:
            num = self._contents.readinto(buffer[end:])
            self.num_bytes += num
            self.has_ended = not num
            end += num
        return buffer[:end]
