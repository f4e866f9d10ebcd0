"""Stops: where to stop, what to print in passing, and which there are."""

from __future__ import annotations

from collections.abc import Iterable

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.commands.answer import Answer, Command, Group, listed, said
from stepscope.app.debug.commands.where_it_is import row_text, where
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops import KINDS
from stepscope.app.debug.stops.stop import Stop
from stepscope.app.debug.stops.watch_stops import RESOURCES
from stepscope.app.present.blocks import Table
from stepscope.app.present.where import RESOLUTION_NS
from stepscope.app.units import moment
from stepscope.ingest.derive.holding_intervals import TAKING
from stepscope.ingest.errors import ConfigError

ARROW = "=>"


def split_columns(words: str) -> tuple[str, tuple[str, ...] | None]:
    """A condition, and the columns behind its `=>`; None where it has none."""
    wanted, arrow, columns = words.partition(ARROW)
    if not arrow:
        return words.strip(), None
    listed = tuple(each.strip() for each in columns.split(",") if each.strip())
    if not listed:
        raise ConfigError(f"no column stands behind {ARROW}", todo="name one or more")
    return wanted.strip(), listed


def _break(debugger: Debugger, words: str) -> Answer:
    return _made(debugger, debugger.add("break", words))


def _watch(debugger: Debugger, words: str) -> Answer:
    return _made(debugger, debugger.add("watch", words))


def _trace(debugger: Debugger, words: str) -> Answer:
    wanted, columns = split_columns(words)
    return _made(debugger, debugger.add("trace", wanted, columns))


def _made(debugger: Debugger, stop: Stop) -> Answer:
    is_here = stop.does != "trace" and stop.is_at(debugger.here)
    here = ("; it is here" if len(stop) == 1 else "; one is here") if is_here else ""
    none = "" if len(stop) else f"; {stop.nowhere}"
    line = f"stop {stop.number}: {stop.text}, {times(len(stop), 'hit')}{none}{here}"
    return said(line, stop=stop.number, num_hits=len(stop))


def _rwatch(debugger: Debugger, words: str) -> Answer:
    """Go back to the last that changed it, and say who took it and who had it before."""
    stop = debugger.find(words, "watch")
    if (hit := stop.before(debugger.here)) is None:
        return said(f"nothing had changed {stop.wanted} before", hit=None).then(where(debugger))
    row = stop.row(hit, debugger.tables)
    debugger.go_to_hit(stop, hit)
    table = stop.sources[hit.source].table
    told = said(f"{table}: {row_text(row, table)}", hit={"table": table, "row": dict(row)})
    return told.then(where(debugger))


def _info(debugger: Debugger, words: str) -> Answer:
    what = AS_BEFORE.get(words.strip(), words.strip() or "stops")
    if what not in INFO:
        raise ConfigError(f"info {what}: not known", todo=f"it can be {', '.join(INFO)}")
    return INFO[what](debugger)


def _stops(debugger: Debugger) -> Answer:
    if not debugger.stops:
        return said("no stops; break and watch make one", stops=[])
    rows = tuple(
        (stop.number, stop.text, len(stop), _next(debugger, stop))
        for stop in debugger.stops.values()
    )
    return listed(("stop", "where", "hits", "next"), rows, "stops")


def _next(debugger: Debugger, stop: Stop) -> str | None:
    hit = stop.after(debugger.here)
    return hit and moment(hit.here.ts_ns - debugger.bounds_ns[0], RESOLUTION_NS)


def _ranks(debugger: Debugger) -> Answer:
    at = {debugger.rank: debugger.position, **dict(debugger.others())}
    names = ("", "rank", "step")
    rows = tuple(
        ("→" if rank == debugger.rank else "", rank, at[rank].step) for rank in debugger.ranks
    )
    facts = [{"rank": rank, "step": step} for _, rank, step in rows]
    return Answer((Table(names, rows),), {"ranks": facts})


def _flags(debugger: Debugger) -> Answer:
    flags = debugger.flags.all
    if not flags:
        return said("no flags; flag NAME makes one", flags=[])
    first_ns = debugger.bounds_ns[0]
    rows = tuple(
        (f"@{name}", flag.rank, flag.step, moment(flag.ts_ns - first_ns, RESOLUTION_NS), flag.note)
        for name, flag in sorted(flags.items(), key=lambda each: each[1].ts_ns)
    )
    return listed(("flag", "rank", "step", "at", "note"), rows, "flags")


def _delete(debugger: Debugger, words: str) -> Answer:
    if words.startswith("@"):
        debugger.flags.drop(words[1:])
        return said(f"flag {words} is gone")
    wanted = [number for number in debugger.stops if not words or words == str(number)]
    if not wanted:
        there = ", ".join(map(str, debugger.stops)) or "none"
        raise ConfigError(f"no stop {words or 'at all'}", todo=f"there are {there}")
    for number in wanted:
        del debugger.stops[number]
    return said(f"stop {', '.join(map(str, wanted))} deleted", deleted=wanted)


AS_BEFORE = {"marks": "flags"}
"""What may be asked for by the name that it had before."""
INFO = {"stops": _stops, "ranks": _ranks, "flags": _flags}


def stop_words(debugger: Debugger) -> Iterable[str]:
    """What may stand behind break, watch and trace."""
    return (word for kind in KINDS for word in kind.words(debugger.tables))


def example_stop(debugger: Debugger) -> str:
    """A condition that some row of this trace meets, as far as it has any."""
    event = debugger.tables.example("lifecycle")
    decided = debugger.tables.example("decisions")
    if decided:
        return f"{decided['verdict']} {decided['subject']}"
    return f"{event['event']} {event['request']}" if event else "steps: dur_ns > 1000000"


def _example_condition(debugger: Debugger) -> str:
    step = debugger.tables.example("steps")
    known = [name for name in ("num_waiting", "num_decode_reqs", "dur_ns") if step and step[name]]
    return f"break steps: {known[0]} > {step[known[0]] // 2}" if step and known else "break finding"


def _example_watch(debugger: Debugger, command: str) -> str | None:
    row = debugger.tables.example("allocations")
    words = {resource: word for word, resource in RESOURCES.items()}
    if row and row["op"] in (*TAKING, "release"):
        return f"{command} {words[row['resource']]} {row['id']}"
    event = debugger.tables.example("lifecycle")
    return f"{command} request {event['request']}" if event else None


STOPPING = Group(
    "stopping",
    (
        Command("break", "break WHERE", "stop there: a condition, an event, a finding", _break,
                ("b",), stop_words, _example_condition),
        Command("watch", "watch THING", "stop where it changes: block 5, slot 2, request R", _watch,
                (), stop_words, lambda debugger: _example_watch(debugger, "watch")),
        Command("rwatch", "rwatch THING", "go back to who changed it last", _rwatch, (),
                stop_words, lambda debugger: _example_watch(debugger, "rwatch")),
        Command("trace", "trace WHERE [=> COLUMNS]", "print a line for each hit that is passed",
                _trace, (), stop_words, lambda debugger: f"trace {example_stop(debugger)}"),
        Command("info", "info stops|ranks|flags", "list what there is", _info, ("i",),
                lambda _debugger: INFO, lambda _debugger: "info stops"),
        Command("delete", "delete [N|@NAME]", "delete a stop or a flag; all stops without", _delete,
                ("d",), lambda debugger: map(str, debugger.stops), lambda _debugger: "delete 1"),
    ),
)  # fmt: skip
