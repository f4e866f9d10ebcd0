"""Messages as bytes: what was written is read, and what is no message says so."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.dap.framing import LONGEST, read_message, write_message
from stepscope.ingest.errors import ConfigError
from tests.looped import looped
from tests.tiers import slow

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
MESSAGES = st.dictionaries(st.text(), VALUES, max_size=4)


@slow
@given(st.lists(MESSAGES, max_size=4))
def test_what_is_written_is_read_in_the_same_order(messages: list[dict[str, Any]]) -> None:
    stream = io.BytesIO()
    for message in messages:
        write_message(stream, message)
    stream.seek(0)

    assert [read_message(stream) for _ in messages] == messages
    assert read_message(stream) is None


@given(MESSAGES, st.data())
def test_a_message_that_is_cut_anywhere_is_refused(
    message: dict[str, Any], data: st.DataObject
) -> None:
    stream = io.BytesIO()
    write_message(stream, message)
    whole = stream.getvalue()
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]

    with pytest.raises(ConfigError):
        read_message(io.BytesIO(cut))


@given(st.binary(max_size=60))
def test_whatever_bytes_come_end_in_a_message_the_end_or_one_line(received: bytes) -> None:
    with suppress(ConfigError):
        message = read_message(io.BytesIO(received))
        assert message is None or isinstance(message, dict)


@looped(
    ("received", "said"),
    [
        (b"Content-Length: 2\r\n\r\n[]", "not a JSON object"),
        (b"Content-Length: 3\r\n\r\n{}", "ends after 2 of 3 bytes"),
        (b"Content-Length: -2\r\n\r\n{}", "is no number"),
        (b"Content-Length: %d\r\n\r\n" % (LONGEST + 1), "is no number up to"),
        (b"Content-Type: x\r\n\r\n{}", "no Content-Length"),
        (b"Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}", "two Content-Lengths"),
        (b"x" * 10_000, "a header has no end"),
        (b'Content-Length: 4\r\n\r\n"\xff\xff"', "not a JSON object"),
        (b'Content-Length: 12\r\n\r\n{"a":"\\ud800"', "not a JSON object"),
        (b"Content-Length: 99999\r\n\r\n" + b"[" * 99_999, "not a JSON object"),
    ],
)
def test_what_is_no_message_is_refused_with_what_is_wrong(received: bytes, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_message(io.BytesIO(received))
