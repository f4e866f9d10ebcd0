"""Events in the order of their packets, as columns; the arguments of most of them packed."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ingest.derive.collectives.inferred import tells_of_collectives
from stepscope.ingest.readers.args_numbers import CORRELATION, EXTERNAL_ID, number_in
from stepscope.ingest.readers.gathered import Rows
from stepscope.ingest.readers.perfetto.packets.track_event import Event, Template
from stepscope.ingest.storage.spool import Part, Spool, packed

BEGUN = ("begin", "instant", "slice", "async begin", "async instant")
"""Roles of events that make a span, or may."""
_I64, _U32 = pl.Int64, pl.UInt32
_NUMBERS = {"dur_ns": _I64, "correlation": _I64, "step": _I64}
READ = {"packet": _I64, "ts_ns": _I64, "template": _U32, "args": pl.String, **_NUMBERS}
_TEMPLATE = {"role": pl.String, "track": _I64, "name": pl.String, "category": pl.String,
         "id": pl.String, "told_form": pl.String}  # fmt: skip
_ARROW = {
    "packet": _I64, "event": _U32, "ts_ns": _I64, "track": _I64, "arrow": pl.String,
    "end": pl.String, "flow": pl.String, "name": pl.String, "category": pl.String,
}  # fmt: skip
_EVENTS = {"ts_ns": _I64, "template": _U32}
_BEGUN = {"event": _U32, **_NUMBERS, "linked": _I64, "external": _I64}
_EVENT_ARGS, _ROW_ARGS = ({name: _U32, "args": pl.String} for name in ("event", "row"))
_NUM_KNOWN = 1 << 16


@dataclass(frozen=True, slots=True)
class EventTables:
    """Events of a file; they are numbered in its order.

    templates   what events have in common: the fields of `Template`
    events      ts_ns and template of each
    begun       of those that begin something: event, dur_ns, correlation, step, and the numbers
                among its arguments that may serve as correlation: `linked`, `external`
    args        arguments of those, row by row, packed
    end_args    arguments of others: event, args
    candidates  row and args of those begun that tell of collectives
    arrows      their ends: event, ts_ns, track, and the fields of `Arrow`
    """

    templates: pl.DataFrame
    events: pl.DataFrame
    begun: pl.DataFrame
    args: list[Part]
    end_args: pl.DataFrame
    candidates: pl.DataFrame
    arrows: pl.DataFrame


def _copied() -> pl.Expr:
    """Arguments by themselves: a few of a part keep all of it in memory."""
    return pl.col("args") + ""


class _Templates:
    """Numbers for templates, and which of them begin something or tell of collectives."""

    def __init__(self) -> None:
        self._rows = Rows(_TEMPLATE)
        self._numbers: dict[Template, int] = {}
        self._told = pl.DataFrame(schema={"is_begun": pl.Boolean, "tells": pl.Boolean})

    def number(self, template: Template) -> int:
        """The number of a template."""
        number = self._numbers.get(template)
        if number is None:
            if len(self._numbers) >= _NUM_KNOWN:
                self._numbers.clear()
            number = self._numbers[template] = len(self._rows)
            self._rows.add(template)
        return number

    def frame(self) -> pl.DataFrame:
        """The fields of all templates."""
        return self._rows.frame()

    def told(self) -> pl.DataFrame:
        """Of all templates whether they begin something, and tell of collectives."""
        new = self.frame().slice(len(self._told))
        is_begun = new["role"].is_in(BEGUN) & new["told_form"].ne_missing("flow")
        tells = tells_of_collectives(new["name"]).alias("tells")
        self._told.vstack(pl.DataFrame([is_begun.alias("is_begun"), tells]), in_place=True)
        return self._told


class EventRows:
    """Takes events, in parts, each of which is put in order of its packets when it ends."""

    def __init__(self) -> None:
        self.templates = _Templates()
        self._part = Rows(READ)
        self._arrows_of_part = Rows(_ARROW)
        self._num = self._num_begun = 0
        self._events = Rows(_EVENTS)
        self._begun: list[pl.DataFrame] = [pl.DataFrame(schema=_BEGUN)]
        self._args = Spool()
        self._end_args, self._candidates = Rows(_EVENT_ARGS), Rows(_ROW_ARGS)
        self._arrows = Rows(_ARROW)

    def __len__(self) -> int:
        return self._num + len(self._part)

    def add(self, packet: int, ts_ns: int, event: Event) -> None:
        """Take the event of a packet, by its number."""
        template = self.templates.number(event.template)
        numbers = (event.dur_ns, event.correlation, event.step)
        self._part.add((packet, ts_ns, template, event.args, *numbers))
        for arrow in event.arrows:
            at_ns, track = ts_ns + arrow.offset_ns, event.template.track
            told = (str(arrow.arrow), arrow.end, arrow.flow, arrow.name, arrow.category)
            self._arrows_of_part.add((packet, None, at_ns, track, *told))

    def extend(self, events: pl.DataFrame) -> None:
        """Take events with columns of `READ`."""
        self._part.extend(events)

    def end_part(self, at_least: int = 0) -> None:
        """Put what was taken in order, if it is enough; what is taken now comes behind it."""
        if len(self._part) < at_least:
            return
        part = self._part.drained()
        if not part["packet"].is_sorted():
            part = part.sort("packet", maintain_order=True)
        number = pl.int_range(self._num, self._num + len(part), dtype=_U32).alias("event")
        part = part.with_columns(number)
        arrows = self._arrows_of_part.drained()
        place = part["packet"].search_sorted(arrows["packet"])
        self._arrows.extend(arrows.with_columns(part["event"].gather(place)))
        self._keep(part)
        self._num += len(part)

    def tables(self) -> EventTables:
        """All that was taken."""
        self.end_part()
        return EventTables(
            self.templates.frame(),
            self._events.frame(),
            pl.concat(self._begun, how="diagonal"),
            self._args.parts,
            self._end_args.frame(),
            self._candidates.frame(),
            self._arrows.frame().drop("packet"),
        )

    def _keep(self, part: pl.DataFrame) -> None:
        is_begun, tells = (each.gather(part["template"]) for each in self.templates.told())
        self._events.extend(part.select(*_EVENTS))
        ends = part.filter(~is_begun).drop_nulls("args")
        self._end_args.extend(ends.select("event", _copied()))
        begun = part.filter(is_begun)
        if begun.is_empty():
            return
        args = begun["args"]
        linked, external = number_in(args, CORRELATION), number_in(args, EXTERNAL_ID)
        numbers = begun.select("event", *_NUMBERS, linked=linked, external=external)
        self._begun.append(
            numbers.select(each for each in numbers if each.null_count() < len(each))
        )
        self._args.add([packed(args)])
        row = pl.int_range(self._num_begun, self._num_begun + len(begun), dtype=_U32)
        candidates = begun.with_columns(row.alias("row")).filter(tells.filter(is_begun))
        self._candidates.extend(candidates.select("row", _copied()))
        self._num_begun += len(begun)
