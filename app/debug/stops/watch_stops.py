"""Stop where one thing changes: a block or a slot its owner, a request, a core, a buffer."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from stepscope.app.debug.stops.stop import Selection
from stepscope.app.debug.stops.tables import Tables
from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.ingest.derive.holding_intervals import HANDS
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import near_names

RESOURCES = {"block": "kv-block", "slot": "slot", "token": "kv-token"}
NUMBERED = {"core": ("core_spans", "core"), "task": ("core_spans", "task")}
_OF_RANK = re.compile(r"(?P<which>.+?)\s+of\s+rank\s+(?P<rank>\d{1,9})")


class WatchStops:
    """What is watched, and which of them: `block 5`, `slot 2`, `request req-17`."""

    usage = (
        ("block N | slot N", "it changes hands: who takes it, who gives it up"),
        ("request NAME", "anything happens to it, or is decided about it"),
        ("core N | task N", "a block of a task begins on the core, or of the task on any"),
        ("buffer NAME", "somebody reads or writes it"),
    )

    def read(self, wanted: str, tables: Tables) -> tuple[Selection, ...] | None:
        """Read what is watched; raises ConfigError for a number that is none."""
        what, which, rank = _parts(wanted)
        if what in RESOURCES:
            own = pl.col("resource") == RESOURCES[what]
            is_it = own & (pl.col("id") == _number(what, which)) & pl.col("op").is_in(HANDS)
            return (Selection("allocations", _of_rank(is_it, rank)),)
        if what in NUMBERED:
            table, column = NUMBERED[what]
            return (Selection(table, _of_rank(pl.col(column) == _number(what, which), rank)),)
        if what == "request":
            is_about = (pl.col("subject_kind") == "request") & (pl.col("subject") == which)
            about = Selection("decisions", is_about)
            return Selection("lifecycle", pl.col("request") == known_request(which, tables)), about
        if what == "buffer":
            is_it = pl.col("buffer") == known_buffer(which, tables)
            return (Selection("accesses", _of_rank(is_it, rank)),)
        return None

    def words(self, tables: Tables) -> Iterable[str]:
        """What can be watched in this trace."""
        words = {
            "allocations": ("block", "slot"), "lifecycle": ("request",),
            "core_spans": ("core", "task"), "accesses": ("buffer",),
        }  # fmt: skip
        return (word for table in words if tables.is_recorded(table) for word in words[table])


def names_of_a_rank(wanted: str) -> bool:
    """Whether words name what each rank has for itself, such as block 5, without the rank."""
    what, _, rank = _parts(wanted)
    return rank is None and what in {*RESOURCES, *NUMBERED, "buffer"}


def _parts(wanted: str) -> tuple[str, str, int | None]:
    """What is watched, which of them, and of which rank if that is said."""
    what, _, which = (part.strip() for part in wanted.partition(" "))
    found = _OF_RANK.fullmatch(which) if what != "request" else None
    return (what, found["which"], int(found["rank"])) if found else (what, which, None)


def _of_rank(is_it: pl.Expr, rank: int | None) -> pl.Expr:
    return is_it if rank is None else is_it & (pl.col("rank") == rank)


def known_buffer(name: str, tables: Tables) -> str:
    """The name of a buffer that the trace has; raises ConfigError naming near matches."""
    if name in (known := tables.names("accesses", "buffer")) or not known:
        return name
    raise ConfigError(f"the trace has no buffer {name!r}", todo=near_names(name, sorted(known)))


def known_request(name: str, tables: Tables) -> str:
    """The name of a request that the trace has; raises ConfigError naming near matches."""
    if name in (known := tables.requests):
        return name
    raise ConfigError(f"the trace has no request {name!r}", todo=near_names(name, known))


def _number(what: str, which: str) -> int:
    if (number := whole_number(which)) is None:
        raise ConfigError(f"{what} {which}: not a number", todo=f"write it like {what} 5")
    return number
