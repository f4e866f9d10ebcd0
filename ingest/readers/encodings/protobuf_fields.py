"""Fields of protobuf one at a time, where there are few or nobody knows yet what they are."""

from __future__ import annotations

from stepscope.ingest.readers.encodings.protobuf_columns import BYTES, FIXED32, FIXED64, VARINT

_LAST_FIELD = 2000
_64_BITS = (1 << 64) - 1
"""Ten bytes have six bits more: these are nobody's."""


def field_at(window: bytes, at: int) -> tuple[int, int] | None:
    """Where the content of a field begins and ends; None where there is no field."""
    tag = varint(window, at)
    if tag is None or not 0 < tag[0] >> 3 < _LAST_FIELD:
        return None
    kind, begin = tag[0] & 7, tag[1]
    if kind == VARINT:
        number = varint(window, begin)
        return None if number is None else (begin, number[1])
    if kind == BYTES:
        length = varint(window, begin)
        return None if length is None else (length[1], length[1] + length[0])
    num_bytes = {FIXED64: 8, FIXED32: 4}.get(kind)
    return None if num_bytes is None else (begin, begin + num_bytes)


def varint(window: bytes, at: int) -> tuple[int, int] | None:
    """A number of seven bits a byte, the lowest first, and where it ends; None where it doesn't."""
    number = 0
    for shift, byte in enumerate(window[at : at + 10]):
        number |= (byte & 127) << 7 * shift
        if byte < 128:
            return number & _64_BITS, at + shift + 1
    return None
