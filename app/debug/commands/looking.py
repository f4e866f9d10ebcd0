"""Looking at the state where it stands: all sides in short, one in full, why, what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from stepscope.app.debug.changes import changes_between
from stepscope.app.debug.commands.answer import Answer, Command, Group, listed, said, tabled
from stepscope.app.debug.commands.listing import functions_here, list_source
from stepscope.app.debug.commands.where_it_is import place_text, position_facts, where
from stepscope.app.debug.commands.why_asked import WHY, asked_of
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.debugger.why_anywhere import why_anywhere
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.facets.look import Facet, Look
from stepscope.app.debug.reasons import LeftOut
from stepscope.app.debug.why import Chain, why_not
from stepscope.app.kept.flags import read_line
from stepscope.app.present.blocks import Fact, Paragraph
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import near

NOT_RECORDED = "not recorded"


def _where(debugger: Debugger, _words: str) -> Answer:
    return where(debugger)


def _state(debugger: Debugger, _words: str) -> Answer:
    look = Look.of(debugger)
    told = {facet.name: facet.at(look) for facet in FACETS}
    facts = tuple(Fact(name, (_short(rows),)) for name, rows in told.items())
    counts = {name: None if rows is None else len(rows) for name, rows in told.items()}
    return where(debugger).then(Answer(facts, {"state": counts}))


def _short(rows: pl.DataFrame | None) -> str:
    """How many there are and the first of them; a single row by its columns."""
    if rows is None:
        return NOT_RECORDED
    if not len(rows):
        return "none"
    first = rows.row(0, named=True)
    if len(rows) == 1:
        return " ".join(f"{name}={value}" for name, value in first.items() if value is not None)
    keys = ("request", "id", "phase", "task", "queue", "name")
    key = next((name for name in keys if first.get(name) is not None), None)
    named = [str(value) for value in rows[key].head(6)] if key else []
    more = " …" if key and len(rows) > len(named) else ""
    return f"{len(rows):,}{': ' if named else ''}{' '.join(named)}{more}"


def _print(debugger: Debugger, words: str) -> Answer:
    name, _, which = (part.strip() for part in words.partition(" "))
    facets = {facet.name: facet for facet in FACETS}
    if name not in facets:
        raise ConfigError(f"print {name or 'nothing'}: not known", todo=near(name, facets))
    rows = facets[name].at(Look.of(debugger))
    if rows is None:
        return said(f"{name}: {_lacking(debugger, facets[name])}", **{name: None})
    chosen = rows.filter(pl.col(facets[name].key).cast(pl.String) == which) if which else rows
    if not len(chosen):
        return said(f"{name}: none{f' of {which}' if which else ''}", **{name: []})
    return tabled(chosen, name, name)


def _lacking(debugger: Debugger, facet: Facet) -> str:
    tables = [table for table in facet.needs if not debugger.tables.is_recorded(table)]
    if tables:
        return f"{NOT_RECORDED}: the trace has no row of {' and '.join(tables)}"
    return f"{NOT_RECORDED}: the trace does not tell {facet.meaning}"


def _why(debugger: Debugger, words: str) -> Answer:
    """The chain from who waits to the root; without a name, the decisions about all left out."""
    asked = asked_of(debugger, words)
    at = debugger.position
    if asked.place:
        at = debugger.position_of(asked.place)
    session = debugger.session_of(at.rank)
    if asked.who:
        if asked.step is None:
            return _chain(why_anywhere(session, asked.who, at, debugger.session_of))
        return _chain(why_not(session, asked.who, asked.step))
    if asked.step is not None:
        at = debugger.position_of(str(asked.step))
    state = session.state_at(at)
    here = "here" if at == debugger.position else f"of step {at.step}"
    if left := session.reasons.left_out(state):
        return tabled(_reasons(left), "left_out", f"left out {here}")
    if state.waiting is None:
        return said(f"{NOT_RECORDED}: the trace does not say who waits", left_out=None)
    return said("nobody is left out", left_out=[])


def _chain(chain: Chain) -> Answer:
    first, *others = chain.lines()
    paragraphs = tuple(Paragraph(line) for line in (*others, *_way(chain)))
    return said(first, why=chain.as_dict()).then(Answer(paragraphs))


def _way(chain: Chain) -> Iterator[str]:
    """How to go to the first row that proves a chain of another rank."""
    proofs = (link.proof for link in chain.links if link.proof and link.proof.seq is not None)
    if chain.elsewhere is not None and (proof := next(proofs, None)):
        yield f"goto #{proof.seq} of rank {chain.elsewhere}"


def _reasons(left: Iterable[LeftOut]) -> pl.DataFrame:
    names = ("request", "verdict", "reason", "resource", "needed", "available", "holder", "step")
    numbers = dict.fromkeys(("needed", "available", "step"), pl.Int64)
    schema = {name: numbers.get(name, pl.String) for name in names}
    rows = [{name: getattr(each, name) for name in names} for each in left]
    return pl.DataFrame(rows, schema=schema)


def _flag(debugger: Debugger, words: str) -> Answer:
    name, note = read_line(words if words.startswith("@") else f"@{words}" * bool(words))
    name = debugger.flag(name, note)
    told = f"@{name} is {place_text(debugger)}" + f": {note}" * bool(note)
    return said(told, flag=name, note=note, **position_facts(debugger))


def _diff(debugger: Debugger, words: str) -> Answer:
    """What differs between two places, each as goto takes it; a flag may be of another rank."""
    places = words.split()
    if len(places) not in {1, 2}:
        raise ConfigError("diff takes one place or two", todo="write it like diff @a @b")
    here = debugger.position
    positions = [debugger.position_of(place) for place in places]
    first, last = (positions[0], here) if len(places) == 1 else positions
    before, after = (debugger.session_of(each.rank).state_at(each) for each in (first, last))
    changes = changes_between(before, after)
    if not changes:
        return said("nothing that is recorded differs", diff=[])
    rows = tuple((change.what, change.before, change.after) for change in changes)
    return listed(("what", "before", "after"), rows, "diff")


def _facet_names(_debugger: Debugger) -> Iterable[str]:
    return (facet.name for facet in FACETS)


def _request(debugger: Debugger) -> str | None:
    row: Any = debugger.tables.example("decisions")
    if row and row["subject_kind"] == "request":
        return f"why {row['subject']}"
    known = debugger.tables.requests
    return f"why {known[len(known) // 2]}" if known else None


LOOKING = Group(
    "looking",
    (
        Command("where", "where", "say where it is", _where, ("w",), example=lambda _d: "where"),
        Command("state", "state", "every side of the state in a line", _state, (),
                example=lambda _debugger: "state"),
        Command("print", "print SIDE [WHICH]", "one side of the state in full", _print, ("p",),
                _facet_names, lambda _debugger: "print waiting"),
        Command("why", WHY, "the chain to the root; without, all left out", _why, (),
                lambda debugger: debugger.tables.requests, _request),
        Command("list", "list [FUNCTION]", "the policy's source at the last decision, if at hand",
                list_source, ("l",), functions_here, lambda _debugger: "list"),
        Command("flag", "flag NAME [NOTE]", "give this place a name: goto @NAME", _flag, ("mark",),
                example=lambda _debugger: "flag here"),
        Command("diff", "diff PLACE [PLACE]", "what differs between two places, or one and here",
                _diff, (), lambda debugger: (f"@{name}" for name in debugger.flags.all),
                lambda _debugger: "diff start end"),
    ),
)  # fmt: skip
