"""Messages of the Debug Adapter Protocol as bytes: headers, an empty line, a JSON object."""

from __future__ import annotations

from typing import Any, BinaryIO

import msgspec

from stepscope.ingest.errors import ConfigError

LONGEST = 1 << 22
LONGEST_HEADER = 1 << 12
LENGTH = b"content-length"


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """Read a message; None where the client has gone between two of them.

    Raises ConfigError for what is no message: whatever follows it could not be understood.
    """
    length = _length(stream)
    if length is None:
        return None
    body = stream.read(length)
    if len(body) < length:
        raise _broken(f"a message ends after {len(body):,} of {length:,} bytes")
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _broken("a message is not a JSON object") from None


def write_message(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write a message, and hand it over at once."""
    body = msgspec.json.encode(message, enc_hook=str)
    stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    stream.flush()


def _length(stream: BinaryIO) -> int | None:
    """How long the next message is; None at the end."""
    length, is_first = None, True
    while line := stream.readline(LONGEST_HEADER):
        if not line.endswith(b"\n"):
            raise _broken("a header has no end")
        name, colon, value = line.strip().partition(b":")
        if not name and not colon:
            if length is None:
                raise _broken("a message has no Content-Length")
            return length
        if name.strip().lower() == LENGTH:
            if length is not None:
                raise _broken("a message has two Content-Lengths")
            length = _number(value.strip())
        is_first = False
    if is_first:
        return None
    raise _broken("the client went away within a header")


def _number(value: bytes) -> int:
    if not value.isdigit() or len(value) > len(str(LONGEST)) or int(value) > LONGEST:
        shown = value[:20].decode("ascii", "replace")
        raise _broken(f"Content-Length {shown!r} is no number up to {LONGEST:,}")
    return int(value)


def _broken(what: str) -> ConfigError:
    todo = "send messages of the Debug Adapter Protocol"
    return ConfigError(what, where="the client", todo=todo)
