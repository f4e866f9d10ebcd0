"""What a trace says about itself: who recorded what, on which clock, and what was lost.

Standard library only, because the recorder writes it. `manifest.json` is the manifest of rank 0,
or of a whole trace written at once; `manifest.rank=3.json` beside it that of rank 3, and
`manifest.rank=0.front-end.json` that of another process which records rows of rank 0.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from stepscope.ingest.errors import LimitExceeded, SchemaMismatch, TraceError
from stepscope.ingest.format_version import check_format
from stepscope.ingest.schema import FORMAT_VERSION

MERGED = "merged"
"""Where the configuration says which profiles were merged into a recording."""
NOT_FOUND = "not_found"
"""Where it names what an adapter could not follow, as the engine has no such function."""
UNREAD = "unread_columns"
"""Where it names columns of its files that this version does not know."""
STOPPED = "recording stopped"
"""How the note begins that says why a recorder recorded no more."""
CLOCKS = ("wall", "virtual", "profiler", "none")
"""Kinds of clock; of "none", times say only in which order rows are."""
MANIFEST_LIMIT_BYTES = 64 << 20
_MEMBER = re.compile(r'\s*,?\s*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Writer:
    """Who writes a trace: a rank, or a part of it that records in a process of its own.

    Its text, `0` or `0.front-end`, is in the names of its files.
    """

    rank: int = 0
    part: str = ""

    def __str__(self) -> str:
        return f"{self.rank}.{self.part}" if self.part else str(self.rank)

    @classmethod
    def named(cls, text: str) -> Writer | None:
        """Give the writer of a text; None of what is none."""
        found = re.fullmatch(r"([0-9]{1,9})(?:\.([a-z0-9-]{1,40}))?", text)
        return cls(int(found[1]), found[2] or "") if found else None


@dataclass(frozen=True, slots=True)
class ClockInfo:
    """The clock of every time in the trace; `epoch_ns` is the Unix time of its zero."""

    kind: str
    epoch_ns: int = 0

    @property
    def has_times(self) -> bool:
        """Whether differences of times are durations."""
        return self.kind != "none"


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A line of an engine's log that is no row.

    `kind` is `fatal`, `exception`, `shutdown`, `start` (of a server, after reports of another) or,
    of the last line of the server that reported, `end`.

    `ts_ns` is null where the line has no time. `num_after` counts lines since the last one that
    reported what the engine does. `rank` is null where the line does not say which engine wrote it.
    """

    kind: str
    text: str
    ts_ns: int | None = None
    num_after: int = 0
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a reader did with the records of a file, counted by kind of record or of trouble.

    `read` and `skipped` add up to what is in the file, but for what is read or skipped of a part of
    a record: its kind says so. What was mended is `repaired`, and `inferred` what the file does not
    say itself. `notes` are sentences on what numbers do not tell. `messages` are lines of an
    engine's log about its end, in order.
    """

    read: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    inferred: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    messages: tuple[LogMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """Producer, clock, ranks, configuration and completeness of a trace.

    `tables` maps a table's name to complete, inferred, ordered (the order of its times is right and
    their distance says nothing) or partial; a table that is not named is absent. `workload` is
    enough to run it again. `dropped` counts rows per table that were given to the recorder and not
    recorded. `recovered` maps a writer to what was found in its unclosed journal: `{"rows": {table:
    rows}, "live": whether it is still recorded, "discarded_bytes": bytes, "notes": [text]}`, with
    `"damaged": True` where its manifest or Parquet files are damaged.
    """

    producer: str
    producer_version: str = ""
    clock: ClockInfo = ClockInfo("wall")
    ranks: tuple[int, ...] = (0,)
    config: Json = field(default_factory=dict)
    workload: Json | None = None
    scenario: str | None = None
    variant: str | None = None
    tables: dict[str, str] = field(default_factory=dict)
    closed: bool = True
    recovered: Json | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    report: ReadReport | None = None
    format_version: int = FORMAT_VERSION

    def is_whole(self, *tables: str) -> bool:
        """Tell whether no row of `tables` can be missing, so that what is not there never was."""
        return self.closed and all(self.tables.get(table) == "complete" for table in tables)

    def is_measured(self, table: str) -> bool:
        """Tell whether times of `table` are measured: of ordered ones only the order is right."""
        return self.tables.get(table) != "ordered"

    @property
    def is_recording(self) -> bool:
        """Tell whether a recorder wrote it, whatever profile was merged into it afterwards."""
        return self.report is None or MERGED in self.config

    @property
    def live_ranks(self) -> tuple[str, ...]:
        """Ranks that were still being recorded when the trace was opened."""
        recovered = (self.recovered or {}).items()
        return tuple(
            rank for rank, was in recovered if isinstance(was, dict) and was.get("live") is True
        )

    def to_json(self) -> str:
        """Give the manifest as JSON text, the same for the same manifest.

        What JSON has no form for is written as its text. Raises `ValueError` where the
        configuration holds itself or is nested too deeply, `TypeError` where a key is no text.
        """
        try:
            text = json.dumps(self, indent=1, ensure_ascii=False, default=_plain)
        except RecursionError:
            raise ValueError("what a manifest says is nested too deeply") from None
        return text.encode("utf-8", "replace").decode() + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, where: str = "manifest.json") -> Manifest:
        """Read JSON text; raises `TraceError` unless it is a manifest that this version knows."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"not valid JSON: {error}", where=where) from None
        if not isinstance(found, dict):
            raise SchemaMismatch("a manifest is a JSON object", where=where)
        _check_version(found.get("format_version", 1), where)
        known = {name: value for name, value in found.items() if name in _SHAPES}
        for name, value in known.items():
            if not _SHAPES[name](value):
                raise SchemaMismatch(f"{name!r} has the wrong type", where=where)
        return _manifest(known, where)


def _plain(value: Any) -> Any:
    """Give the fields of what a manifest is made of, and of all else its text."""
    if isinstance(value, Manifest | ClockInfo | ReadReport | LogMessage):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return str(value)


def manifest_name(writer: Writer) -> str:
    """Name the file that holds a writer's manifest."""
    return "manifest.json" if writer == Writer() else f"manifest.rank={writer}.json"


def manifest_files(folder: Path) -> dict[Writer, Path]:
    """List the files that hold a manifest, by their writers in order."""
    found = {}
    for file in folder.glob("manifest*.json"):
        writer = Writer.named(file.stem.partition("=")[2] or "0")
        if writer and file.name == manifest_name(writer):
            found[writer] = file
    return dict(sorted(found.items()))


def write_manifest(manifest: Manifest, file: Path) -> None:
    """Write a manifest so that a reader sees the old one or the new one, never half of one."""
    draft = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(manifest.to_json(), encoding="utf-8")
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def read_manifest(file: Path) -> Manifest:
    """Read one manifest file; raises `TraceError`, and `OSError` where it cannot be opened."""
    if file.stat().st_size > MANIFEST_LIMIT_BYTES:
        raise LimitExceeded("the manifest is larger than 64 MiB", where=str(file))
    return Manifest.from_json(file.read_bytes(), str(file))


def read_cut_manifest(file: Path, writer: Writer) -> Manifest | None:
    """What a manifest that is cut off says before its end; None where it is not cut off.

    Whatever it does not say is unknown: it counts as not closed. Raises `NewerFormat`.
    """
    text = file.read_bytes().decode("utf-8", "replace")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        found = _whole_members(text, text.find("{") + 1)
    else:
        return None
    _check_version(found.get("format_version", 1), str(file))
    fits = {name: value for name, value in found.items() if name in _SHAPES}
    fits = {name: value for name, value in fits.items() if _SHAPES[name](value)}
    unknown = {"producer": "unknown", "ranks": [writer.rank], "closed": False}
    return _manifest(unknown | fits, str(file))


def _whole_members(text: str, at: int, depth: int = 1) -> Json:
    """The members of the object that begins before a place, up to the first that is cut off.

    Of one that is cut off itself, down to a depth, its own whole members.
    """
    decoder, found = json.JSONDecoder(), {}
    while member := _MEMBER.match(text, at):
        name, at = json.loads(member[1], strict=False), member.end()
        try:
            found[name], at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if depth and text[at : at + 1] == "{":
                found[name] = _whole_members(text, at + 1, depth - 1)
            break
        if not text[at:].strip() and not isinstance(found[name], str | list | dict):
            del found[name]  # more digits may have followed
    return found


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text_or_null(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_counts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_int, value.values()))


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _are_messages(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(message, dict)
        and isinstance(message.get("kind"), str)
        and isinstance(message.get("text"), str)
        and (message.get("ts_ns") is None or _is_int(message["ts_ns"]))
        and _is_int(message.get("num_after", 0))
        and (message.get("rank") is None or _is_int(message["rank"]))
        for message in value
    )


def _is_object_or_null(value: object) -> bool:
    return value is None or isinstance(value, dict)


_SHAPES = {
    "producer": lambda value: isinstance(value, str),
    "producer_version": lambda value: isinstance(value, str),
    "clock": lambda value: (
        isinstance(value, dict)
        and value.get("kind") in CLOCKS
        and _is_int(value.get("epoch_ns", 0))
    ),
    "ranks": lambda value: isinstance(value, list) and bool(value) and all(map(_is_int, value)),
    "config": lambda value: isinstance(value, dict),
    "workload": _is_object_or_null,
    "scenario": _is_text_or_null,
    "variant": _is_text_or_null,
    "tables": _is_texts,
    "closed": lambda value: isinstance(value, bool),
    "recovered": _is_object_or_null,
    "dropped": _is_counts,
    "report": lambda value: (
        value is None
        or (
            isinstance(value, dict)
            and all(
                _is_counts(value.get(name, {}))
                for name in ("read", "skipped", "repaired", "inferred")
            )
            and isinstance(value.get("notes", []), list)
            and _are_messages(value.get("messages", []))
        )
    ),
    "format_version": _is_int,
}
assert _SHAPES.keys() == get_type_hints(Manifest).keys()


def _check_version(version: object, where: str) -> None:
    try:
        check_format(version, where)
    except ValueError:
        raise SchemaMismatch("'format_version' is not a number", where=where) from None


def _manifest(known: Json, where: str) -> Manifest:
    if "producer" not in known:
        raise SchemaMismatch("'producer' is missing", where=where)
    clock, report = known.get("clock"), known.get("report")
    known["ranks"] = tuple(known.get("ranks", (0,)))
    known["clock"] = (
        ClockInfo(clock["kind"], clock.get("epoch_ns", 0)) if clock else ClockInfo("wall")
    )
    known["report"] = _report(report) if report else None
    return Manifest(**known)


def _report(found: Json) -> ReadReport:
    counts = {name: found.get(name, {}) for name in ("read", "skipped", "repaired", "inferred")}
    messages = tuple(
        LogMessage(
            message["kind"],
            message["text"],
            message.get("ts_ns"),
            message.get("num_after", 0),
            message.get("rank"),
        )
        for message in found.get("messages", ())
    )
    return ReadReport(**counts, notes=tuple(map(str, found.get("notes", ()))), messages=messages)
