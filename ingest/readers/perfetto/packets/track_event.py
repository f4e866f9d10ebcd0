"""What one TrackEvent says, but for when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from stepscope.ingest.readers.perfetto.packets.arguments import (
    TooDeep,
    joined,
    other,
    text_of,
    values_of,
)
from stepscope.ingest.readers.perfetto.packets.sequence import (
    CATEGORIES,
    CORRELATIONS,
    NAMES,
    Sequence,
)
from stepscope.ingest.readers.perfetto.packets.snapshots import LIMIT_NS
from stepscope.ingest.readers.perfetto.packets.texts import text, texts
from stepscope.ingest.writers.perfetto_packets import OURS

_FIELDS = TrackEvent.DESCRIPTOR.fields_by_name
TRACK, TYPE, LEGACY = _FIELDS["track_uuid"], _FIELDS["type"], _FIELDS["legacy_event"]
_NAME, _NAME_IID = _FIELDS["name"], _FIELDS["name_iid"]
_CATEGORIES, _CATEGORY_IIDS = _FIELDS["categories"], _FIELDS["category_iids"]
_ANNOTATIONS = _FIELDS["debug_annotations"]
_CORRELATION, _CORRELATION_STR = _FIELDS["correlation_id"], _FIELDS["correlation_id_str"]
_CORRELATION_IID = _FIELDS["correlation_id_str_iid"]
PASSING = (_FIELDS["flow_ids"], _FIELDS["flow_ids_old"])
ENDING = (_FIELDS["terminating_flow_ids"], _FIELDS["terminating_flow_ids_old"])
VALUES = (_FIELDS["double_counter_value"], _FIELDS["counter_value"])
EXTRA = (_FIELDS["extra_counter_track_uuids"], _FIELDS["extra_counter_values"])
EXTRA_DOUBLE = (
    _FIELDS["extra_double_counter_track_uuids"], _FIELDS["extra_double_counter_values"],
)  # fmt: skip
TIMES = (_FIELDS["timestamp_delta_us"], _FIELDS["timestamp_absolute_us"])
_READ = frozenset((
    TRACK, TYPE, LEGACY, _NAME, _NAME_IID, _CATEGORIES, _CATEGORY_IIDS, _ANNOTATIONS, _CORRELATION,
    _CORRELATION_STR, _CORRELATION_IID, *PASSING, *ENDING, *VALUES, *EXTRA, *EXTRA_DOUBLE, *TIMES,
))  # fmt: skip
_NUMBER = re.compile(r"-?[0-9]{1,18}")
KINDS = {1: "begin", 2: "end", 3: "instant", 4: "counter"}
PHASES = {
    "B": "begin", "E": "end", "X": "slice", "i": "instant", "I": "instant", "R": "instant",
    "P": "instant", "s": "flow", "t": "flow", "f": "flow", "b": "async begin", "S": "async begin",
    "e": "async end", "F": "async end", "n": "async instant", "T": "async instant",
    "p": "async instant",
}  # fmt: skip
FlowEnd = Literal["start", "step", "finish"]
FLOW_ENDS: Mapping[str, FlowEnd] = {"s": "start", "t": "step", "f": "finish"}
LIMIT_CORRELATION = 1 << 63
STEP = f"{OURS}step"
"""The annotation that holds a span's step."""
Said = Mapping[Any, Any]
"""The fields that a message has, by their descriptors."""


class Arrow(msgspec.Struct, frozen=True):
    """One end of an arrow, `offset_ns` after its event; `end` and `flow` None where not told."""

    arrow: int | str
    end: FlowEnd | None = None
    flow: str | None = None
    name: str | None = None
    category: str | None = None
    offset_ns: Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)] = 0


class Template(NamedTuple):
    """What many events have in common; `id` tells asynchronous ones of a category apart.

    `told_form` is the form of a span where the file says it.
    """

    role: str
    track: int
    name: str | None = None
    category: str | None = None
    id: str | None = None
    told_form: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An event without its time."""

    template: Template
    args: str | None = None
    dur_ns: int | None = None
    correlation: int | None = None
    step: int | None = None
    arrows: Seq[Arrow] = ()


class Unread(Exception):
    """An event of a kind that is not read; its text says which."""


def role_of(said: Said) -> str:
    """What kind of event it is; raises `Unread`."""
    kind = said.get(TYPE, 0)
    if kind in KINDS:
        return KINDS[kind]
    if kind:
        raise Unread(f"track event of type {kind}")
    phase = _phase(said)
    if phase not in PHASES:
        known = phase if phase.isascii() and phase.isprintable() else "of another kind"
        raise Unread(f"legacy event {known}" if phase else "track event without a type")
    return PHASES[phase]


class EventParser:
    """Reads TrackEvents by the state of their sequence, within limits of text and depth.

    What it cuts is counted, for `num` events that are alike.
    """

    def __init__(self, limit_text: int, limit_depth: int) -> None:
        self.num_long = 0
        self.num_deep = 0
        self.num_unnamed = 0
        self._limit_text = limit_text
        self._limit_depth = limit_depth

    def template(
        self, said: Said, role: str, track: int, sequence: Sequence, num: int = 1
    ) -> Template:
        """What the event says but for its arguments."""
        legacy = said.get(LEGACY)
        name, category = self._name(said, sequence, num), _category(said, sequence)
        return Template(role, track, name, category, None if legacy is None else _id(legacy))

    def parse(self, said: Said, role: str, track: int, sequence: Sequence) -> Event:
        """Everything that the event says, and the ends of arrows that touch it."""
        template = self.template(said, role, track, sequence)
        parts = self._arguments(said, sequence)
        ours = {name: parts.pop(name) for name in [*parts] if name.startswith(OURS)}
        told = _told(ours.get(f"{OURS}flows"))
        is_flow = role == "flow"
        return Event(
            template._replace(told_form=_form(ours.get(f"{OURS}form"))),
            self.within_limit(joined(parts)),
            _legacy_ns(said) if role == "slice" else None,
            said[_CORRELATION] if 0 < said.get(_CORRELATION, 0) < LIMIT_CORRELATION else None,
            _step(ours.get(STEP)),
            [_legacy_arrow(template, _phase(said))] if is_flow else _plain_arrows(said, told),
        )

    def within_limit(self, args: str | None) -> str | None:
        """Arguments, unless they are too long."""
        if args is not None and len(args) > self._limit_text:
            self.num_long += 1
            return None
        return args

    def _name(self, said: Said, sequence: Sequence, num: int) -> str | None:
        name = text(said[_NAME]) if _NAME in said else None
        if name is None:
            iid = said.get(_NAME_IID) or (said[LEGACY].name_iid if LEGACY in said else 0)
            name = sequence.interned[NAMES].get(iid) if iid else None
            self.num_unnamed += num * bool(iid and name is None)
        if name is not None and len(name) > self._limit_text // 4:
            self.num_long += num
            return name[: self._limit_text // 4]
        return name

    def _arguments(self, said: Said, sequence: Sequence) -> dict[str, str]:
        try:
            parts = values_of(said.get(_ANNOTATIONS, ()), sequence, self._limit_depth)
        except TooDeep:
            self.num_deep += 1
            parts = {}
        if not _READ.issuperset(said):
            more = (each for each in said.items() if each[0] not in _READ)
            parts |= dict(other(field, value, sequence) for field, value in more)
        if _CORRELATION_STR in said:
            parts["correlation_id"] = text_of(text(said[_CORRELATION_STR]))
        elif _CORRELATION_IID in said:
            told = sequence.interned[CORRELATIONS].get(said[_CORRELATION_IID])
            parts["correlation_id"] = text_of(told)
        return parts


def _category(said: Said, sequence: Sequence) -> str | None:
    if _CATEGORY_IIDS in said:
        known = sequence.interned[CATEGORIES]
        names = [known.get(iid, f"#{iid}") for iid in said[_CATEGORY_IIDS]]
        return ",".join([*texts(said.get(_CATEGORIES, ())), *names])
    return ",".join(texts(said[_CATEGORIES])) if _CATEGORIES in said else None


def _phase(said: Said) -> str:
    phase = said[LEGACY].phase if LEGACY in said else 0
    return chr(phase) if 0 < phase < 0x80 else ""


def _id(legacy: Any) -> str | None:
    kind = legacy.WhichOneof("id")
    if kind is None:
        return str(legacy.bind_id) if legacy.HasField("bind_id") else None
    scope = f"{text(legacy.id_scope)} " if legacy.id_scope else ""
    return f"{scope}{getattr(legacy, kind)}"


def _legacy_ns(said: Said) -> int | None:
    """How long a slice of an older file took; None where that is beyond all times."""
    dur_ns = said[LEGACY].duration_us * 1000 if LEGACY in said else -1
    return dur_ns if 0 <= dur_ns < LIMIT_NS else None


def _step(told: str | None) -> int | None:
    return int(told) if told and _NUMBER.fullmatch(told) else None


def _form(told: str | None) -> str | None:
    return told.strip('"') if told in ('"async"', '"flow"') else None


def _told(flows: str | None) -> list[Arrow]:
    """What an annotation of ours says of arrows."""
    try:
        return msgspec.json.decode(flows, type=list[Arrow]) if flows else []
    except msgspec.DecodeError:
        return []


def _plain_arrows(said: Said, told: list[Arrow]) -> list[Arrow]:
    """The ends of arrows at an event, with those that were told already."""
    passing = [iid for field in PASSING if field in said for iid in said[field]]
    ending = [iid for field in ENDING if field in said for iid in said[field]]
    if not passing and not ending:
        return told
    known = {arrow.arrow for arrow in told}
    told += [Arrow(each) for each in passing if each not in known]
    return told + [Arrow(each, "finish") for each in ending if each not in known]


def _legacy_arrow(flow: Template, phase: str) -> Arrow:
    arrow = "\0".join((flow.category or "", flow.name or "", flow.id or ""))
    return Arrow(arrow, FLOW_ENDS[phase], flow.id, flow.name, flow.category)
