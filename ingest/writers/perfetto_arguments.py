"""Arguments of a slice as debug annotations, which keep every value that JSON has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec import Raw

_decoder = msgspec.json.Decoder(dict[str, Raw])
_scalar = msgspec.json.Decoder()
_INT64 = range(-(1 << 63), 1 << 63)
_FIELDS = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}
NOT_AN_OBJECT = "args"


def debug_annotations(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The name of each argument, and the field of DebugAnnotation that holds its value.

    Objects and arrays stay JSON text, which Perfetto takes apart, and so do numbers that only
    text can hold. Null is an annotation without a value: Perfetto's engine v52 crashes on JSON
    text that is `null`. Text that is not a JSON object is one argument, "args".
    """
    try:
        arguments = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        yield NOT_AN_OBJECT, {"string_value": text}
        return
    for name, raw in arguments.items():
        yield name, _value(bytes(raw))


def _value(raw: bytes) -> Mapping[str, Any]:
    value = None if raw[:1] in b"{[" else _scalar_of(raw)
    if value is None:
        return {} if raw == b"null" else {"legacy_json_value": raw.decode()}
    return {_FIELDS[type(value)]: value}


def _scalar_of(raw: bytes) -> str | bool | int | float | None:
    """The value, None where no field of a debug annotation holds it."""
    try:
        value: str | bool | int | float | None = _scalar.decode(raw)
    except msgspec.DecodeError:
        return None
    is_too_large = type(value) is int and value not in _INT64
    is_lost = is_too_large or (type(value) is float and not isfinite(value))
    return None if is_lost else value
