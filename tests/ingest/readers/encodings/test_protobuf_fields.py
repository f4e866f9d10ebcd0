"""Fields of protobuf one at a time."""

from __future__ import annotations

import pytest

from stepscope.ingest.readers.encodings.protobuf_fields import varint


@pytest.mark.parametrize(
    ("written", "number"),
    [(b"\xff" * 9 + b"\x7f", (1 << 64) - 1), (b"\xff" * 9 + b"\x01", (1 << 64) - 1), (b"\5", 5)],
)
def test_a_number_has_64_bits_whatever_stands_in_its_last_byte(written: bytes, number: int) -> None:
    assert varint(written, 0) == (number, len(written))
