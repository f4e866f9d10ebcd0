"""Texts of messages: protobuf gives bytes in place of a text that is not UTF-8."""

from __future__ import annotations

from collections.abc import Iterable


def text(value: str | bytes) -> str:
    """A text, with replacement characters for what is not UTF-8."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def texts(values: Iterable[str | bytes]) -> list[str]:
    """Several texts."""
    return [text(value) for value in values]
