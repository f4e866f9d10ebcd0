"""Debug annotations, and what else an event carries, as JSON text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec

from stepscope.ingest.readers.perfetto.packets.sequence import (
    KEYS,
    LOCATIONS,
    STRINGS,
    TYPES,
    Sequence,
)
from stepscope.ingest.readers.perfetto.packets.texts import text, texts

NULL = "null"
_encode = msgspec.json.Encoder().encode
_json = msgspec.json.Decoder()


class TooDeep(Exception):
    """Arguments are nested deeper than the limit."""


def values_of(annotations: Iterable[Any], sequence: Sequence, depth: int) -> dict[str, str]:
    """The value of each annotation as JSON text, by its name; raises `TooDeep`."""
    keys = sequence.interned[KEYS]
    found = {}
    for annotation in annotations:
        iid = annotation.name_iid
        name = keys.get(iid, f"#{iid}") if iid else text(annotation.name)
        found[name] = _value(annotation, sequence, depth)
    return found


def other(field: Any, value: Any, sequence: Sequence) -> tuple[str, str]:
    """A field of an event that is not an annotation: its name and its value as JSON text."""
    from google.protobuf.json_format import MessageToDict  # noqa: PLC0415 - few events have any

    if field.name == "source_location_iid" and value in sequence.interned[LOCATIONS]:
        return "source_location", text_of(sequence.interned[LOCATIONS][value])
    several = [*value] if field.is_repeated else [value]
    if field.message_type is not None:
        several = [MessageToDict(each, preserving_proto_field_name=True) for each in several]
    return field.name, text_of(several if field.is_repeated else several[0])


def interned(sequence: Sequence, iid: int) -> str:
    """A string by its number, null for none."""
    return text_of(sequence.interned[STRINGS].get(iid, f"#{iid}")) if iid else NULL


def joined(parts: Mapping[str, str]) -> str | None:
    """Arguments as one JSON object, None where there are none."""
    if not parts:
        return None
    return "{" + ", ".join([key_of(name) + value for name, value in parts.items()]) + "}"


def text_of(value: object) -> str:
    """A value as JSON text."""
    return _encode(value).decode()


@lru_cache(1 << 12)
def key_of(name: str) -> str:
    """A name as it stands before its value."""
    return f"{text_of(name)}: "


def _value(annotation: Any, sequence: Sequence, depth: int) -> str:
    if depth <= 0:
        raise TooDeep
    kind = annotation.WhichOneof("value")
    if kind in SCALARS:
        return SCALARS[kind](getattr(annotation, kind))
    if kind == "nested_value":
        return _nested(annotation.nested_value, depth)
    if annotation.array_values:
        inner = [_value(each, sequence, depth - 1) for each in annotation.array_values]
        return f"[{', '.join(inner)}]"
    entries = values_of(annotation.dict_entries, sequence, depth - 1)
    return joined(entries) or _other(annotation, sequence)


def _other(annotation: Any, sequence: Sequence) -> str:
    """A string by its number, or a message of a type that is named; else null."""
    if iid := annotation.string_value_iid:
        return interned(sequence, iid)
    if annotation.HasField("proto_value"):
        iid = annotation.proto_type_name_iid
        name = text(annotation.proto_type_name) or sequence.interned[TYPES].get(iid, "")
        return text_of({name: annotation.proto_value.hex()})
    return NULL


def _number(value: float) -> str:
    return text_of(value if isfinite(value) else str(value))


def _string(value: str | bytes) -> str:
    return text_of(text(value))


def _legacy(value: str | bytes) -> str:
    """JSON text as it is; as a string where it is none."""
    found = text(value)
    try:
        _json.decode(found)
    except (msgspec.DecodeError, RecursionError):
        return text_of(found)
    return found


SCALARS: Mapping[str | None, Callable[[Any], str]] = {
    "int_value": str,
    "uint_value": str,
    "string_value": _string,
    "bool_value": text_of,
    "double_value": _number,
    "pointer_value": lambda value: f'"{value:#x}"',
    "legacy_json_value": _legacy,
}


def _nested(value: Any, depth: int) -> str:
    """What older files have in place of entries and arrays."""
    if depth <= 0:
        raise TooDeep
    if value.dict_keys:
        inner = [_nested(each, depth - 1) for each in value.dict_values]
        return joined(dict(zip(texts(value.dict_keys), inner, strict=False))) or "{}"
    if value.array_values:
        return f"[{', '.join([_nested(each, depth - 1) for each in value.array_values])}]"
    for name in ("string_value", "bool_value", "int_value"):
        if value.HasField(name):
            return SCALARS[name](getattr(value, name))
    return _number(value.double_value) if value.HasField("double_value") else "{}"
