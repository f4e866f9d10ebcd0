"""Asking about the whole run: every hit at once, a value over time, who had a block, SQL."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.app.debug.commands.answer import MAX_ROWS, Answer, Command, Group, said, tabled
from stepscope.app.debug.commands.stopping import example_stop, split_columns, stop_words
from stepscope.app.debug.commands.where_it_is import BRIEF
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.app.debug.moments import Position
from stepscope.app.debug.shown.sparkline import sparkline
from stepscope.app.debug.shown.value_over_run import value_over_run
from stepscope.app.debug.stops.stop import Stop
from stepscope.app.debug.stops.tables import MEANINGS
from stepscope.app.debug.stops.watch_stops import RESOURCES
from stepscope.app.debug.stops.whole_numbers import whole_number
from stepscope.app.present.blocks import Fact
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import MOST_ROWS, Bounds

WIDTH = 60


def _all(debugger: Debugger, words: str) -> Answer:
    wanted, columns = split_columns(words)
    stop = debugger.find(wanted)
    if not len(stop):
        return said(f"{stop.wanted}: {stop.nowhere}", num_hits=0, hits=[])
    answer = said(times(len(stop), "hit"), num_hits=len(stop))
    for source in range(len(stop.sources)):
        answer = answer.then(_hits(debugger, stop, source, columns))
    return answer


def _hits(debugger: Debugger, stop: Stop, source: int, columns: tuple[str, ...] | None) -> Answer:
    hits = stop.sources[source]
    names = columns or BRIEF.get(hits.table) or MEANINGS[hits.table][3:7]
    rows = debugger.tables.rows(hits, range(min(len(hits), MAX_ROWS)), names)
    first_ns = debugger.bounds_ns[0]
    at = pl.DataFrame({"after_ns": hits.ts_ns[: len(rows)] - first_ns})
    if len(debugger.ranks) > 1:
        at = at.with_columns(rank=pl.Series(hits.rank[: len(rows)]))
    steps = debugger.tables.rows(hits, range(len(rows)), ["step"]).rename({"step": "at_step"})
    shown = pl.concat([steps, at, rows], how="horizontal")
    return tabled(shown, hits.table, hits.table, len(hits) - len(rows))


def _value(debugger: Debugger, words: str) -> Answer:
    """A value of each step, drawn over the whole run; a table's name and a colon may go before."""
    value = value_over_run(debugger, words)
    if isinstance(value, str):
        return said(value, values=None)
    here_ns = debugger.position.ts_ns
    drawn = sparkline(value.line, WIDTH)
    blocks = (
        Fact(value.expression, (value.told(here_ns),)),
        Fact("", (drawn,)),
        Fact("", (" " * value.line.column(here_ns, WIDTH) + "^",)),
    )
    facts = {"expression": value.expression, **value.facts(here_ns), "sparkline": drawn}
    return Answer(blocks, {"value": facts})


def _who(debugger: Debugger, words: str) -> Answer:
    """Who has had a block or slot, from when to when; an arrow at who has it here."""
    what, _, which = words.partition(" ")
    number = whole_number(which)
    if what not in RESOURCES or number is None:
        raise ConfigError(f"who {words}: not known", todo="write it like who block 5")
    if not debugger.tables.is_recorded("holds"):
        return said("not recorded: the trace has no row of allocations", holds=None)
    is_it = (pl.col("resource") == RESOURCES[what]) & (pl.col("id") == number)
    own = debugger.tables.table("holds").filter(pl.col("rank") == debugger.rank, is_it)
    first_ns = debugger.bounds_ns[0]
    arrow = pl.when(_is_here(debugger.position)).then(pl.lit("→")).otherwise(pl.lit(""))
    rows = own.sort("ts_ns").select(
        here=arrow, owner="owner", op="op", step="step", from_ns=pl.col("ts_ns") - first_ns,
        to_ns=pl.col("to_ns") - first_ns, dur_ns="dur_ns",
    ).collect()  # fmt: skip
    if not len(rows):
        return said(f"nobody is recorded to have had {what} {which.strip()}", holds=[])
    return tabled(rows, "holds")


def _is_here(at: Position) -> pl.Expr:
    """Whether a hold has begun and not ended at a position: by the order of changes, else by time.

    Many changes may bear one time.
    """
    last = pl.lit(BEFORE_ALL if at.seq is None else at.seq)
    begun = pl.when(pl.col("seq").is_null()).then(pl.col("ts_ns") <= at.ts_ns)
    ended = pl.when(pl.col("to_seq").is_null()).then((pl.col("to_ns") <= at.ts_ns).fill_null(False))
    is_begun = begun.otherwise(pl.col("seq") <= last)
    return is_begun & ~ended.otherwise(pl.col("to_seq") <= last)


def _sql(debugger: Debugger, words: str) -> Answer:
    answer = debugger.trace.sql(words, Bounds(rows=MOST_ROWS))
    told = tabled(answer.head(MOST_ROWS))
    if len(answer) <= MOST_ROWS:
        return told
    return told.then(said(f"given up behind {MOST_ROWS:,} rows; count or limit them"))


def _example_value(debugger: Debugger) -> str | None:
    step = debugger.tables.example("steps")
    names = ("num_waiting", "kv_blocks_free", "num_decode_reqs", "dur_ns")
    known = [name for name in names if step and step[name] is not None]
    return f"value {known[0]}" if known else None


def _example_who(debugger: Debugger) -> str | None:
    row = debugger.tables.example("allocations")
    words = {resource: word for word, resource in RESOURCES.items()}
    return f"who {words[row['resource']]} {row['id']}" if row else None


ASKING = Group(
    "asking",
    (
        Command("all", "all WHERE [=> COLUMNS]", "every hit in the run at once, as a table", _all,
                (), stop_words, lambda debugger: f"all {example_stop(debugger)}"),
        Command("value", "value [TABLE:] EXPR", "a value over the run, and what it is here",
                _value, (), lambda _debugger: MEANINGS["steps"], _example_value),
        Command("who", "who block|slot N", "who had it, from when to when", _who, (),
                lambda _debugger: RESOURCES, _example_who),
        Command("sql", "sql QUERY", "a query over tables and intervals", _sql, (),
                lambda _debugger: MEANINGS,
                lambda _debugger: "sql select kind, count(*) as steps from steps group by kind"),
    ),
)  # fmt: skip
