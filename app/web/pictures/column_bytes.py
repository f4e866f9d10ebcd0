"""What has columns as bytes: a line of JSON, and behind it the columns as a browser keeps them.

In the line an array is where its bytes begin, counted from the end of the line, and how many they
are. The line and each column are filled up to multiples of 8 bytes, so that a browser takes a
column where it lies, without a copy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

ALIGNMENT = 8
"""Bytes of the largest number in a column: where each of them begins is a multiple of this."""


class _Columns:
    """Bytes, one column after the other."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._size = 0

    def put(self, column: object) -> list[int]:
        """Add a column; return where it begins and how many bytes it has."""
        if not isinstance(column, np.ndarray):
            raise TypeError(f"{type(column).__name__} is neither JSON nor a column")
        part = np.ascontiguousarray(column).tobytes()
        at, size = self._size, len(part)
        more = -size % ALIGNMENT
        self.parts += [part, b"\0" * more]
        self._size += size + more
        return [at, size]


def with_columns(head: Mapping[str, Any]) -> bytes:
    """The line and the columns of `head`, whose values are JSON and arrays, at any depth.

    Arrays are in the order of the machine's little end. Raises ValueError for a number in the line
    that is no number, TypeError for what is neither.
    """
    columns = _Columns()
    written = json.dumps(head, separators=(",", ":"), allow_nan=False, default=columns.put)
    line = written.encode("ascii")
    filled = b" " * (-(len(line) + 1) % ALIGNMENT)
    return b"".join([line, filled, b"\n", *columns.parts])
