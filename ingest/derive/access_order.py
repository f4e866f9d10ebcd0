"""What happened before what, by recorded synchronisation alone: happens-before with vector clocks.

A stream does what it is given in order. Two streams are ordered by events: what a stream had been
given when it recorded an event is before what another one is given after it waited for that event.
The stream `host` is the thread that gives the others their work: what it knew and did when it
issued something is before that.

So what a stream knows of another one is a moment: all that the other was given up to then is
ordered before what the stream is given from now on. Such a vector clock changes at rows of
`accesses` that synchronise, and only these are gone through one by one. Everything else is looked
up by time, so the cost grows with the rows.

Times say in which order rows were issued, never whether one had ended when the next began. Rows of
one moment have no order that is known: there a wait goes first and a record last, so that no race
is told which may not be one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

import polars as pl

from stepscope.ingest.times import EARLIEST_NS, FAR_NS

HOST = "host"
SYNCHRONISES = ("record", "wait", "synchronize")
SEEN_BY = ("rank", "stream", "other")
_KNOWLEDGE = {
    "rank": pl.Int32, "stream": pl.String, "other": pl.String, "ts_ns": pl.Int64,
    "known_ns": pl.Int64,
}  # fmt: skip
_TIE = ("ts_ns", "stream", "first", "last", "epoch", "segment", "step", "op")
_ACCESS = ("step", "ts_ns", "stream", "first", "last", "epoch", "segment")

Sync = tuple[str, str, str | None]  # stream, op, event
Clock = dict[str, int]
Row = tuple[int, int, str, str, str | None]


def names_events(accesses: pl.LazyFrame) -> bool:
    """Tell whether accesses that record or wait for an event name it; True without any."""
    is_sync = pl.col("op").is_in(["record", "wait"])
    named = accesses.select(named=pl.col("event").is_not_null().any() | ~is_sync.any())
    return named.collect().item() is not False


def touches(accesses: pl.LazyFrame) -> pl.LazyFrame:
    """Reads and writes of buffers, of which buffer, stream and time are known.

    Adds is_write. A copy reads the buffer that it names. Rows or bytes that are not known are the
    whole buffer. `ref` stays where `accesses` numbers its rows by one.
    """
    known = [pl.col(name).is_not_null() for name in ("ts_ns", "buffer", "stream")]
    return (
        accesses.filter(*known, pl.col("op").is_in(["read", "write", "copy"]))
        .with_columns(
            pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
            pl.col("first").fill_null(-FAR_NS).clip(-FAR_NS, FAR_NS),
            pl.col("last").fill_null(FAR_NS).clip(-FAR_NS, FAR_NS),
            is_write=pl.col("op") == "write",
        )
        .select("rank", "buffer", "op", "is_write", *_ACCESS, *_refs(accesses))
    )


def _refs(rows: pl.LazyFrame) -> list[str]:
    return [name for name in ("ref",) if name in rows.collect_schema()]


def unordered(
    of: pl.LazyFrame, others: pl.LazyFrame, strategy: str, known: Callable[[], pl.LazyFrame]
) -> pl.LazyFrame:
    """For each access of `of` the one of `others` next to it in time, where nothing orders the two.

    `strategy` is `backward` for the last one before, `forward` for the first one after. The other's
    columns begin with `other_`. Both touch something of the same buffer, on two streams. Next to it
    is the nearest of the buffer, and the nearest that begins at the same place of it. `known` gives
    `knowledge` of the accesses; it is not called where there is no pair to judge.
    """
    shared = _of_several_streams(of, others)
    near, ordered = (
        rows.join(shared, on=["rank", "buffer"], how="semi").sort(order).collect()
        for rows, order in ((of, "ts_ns"), (others, _TIE))
    )
    nearest = [_nearest(near, ordered, strategy, by) for by in (("first",), ())]
    pairs = pl.concat(nearest).unique().collect()
    if pairs.is_empty():
        return pairs.lazy()
    ahead, behind = ("other_", "") if strategy == "backward" else ("", "other_")
    return (
        _with_known(pairs.lazy(), known, ahead, behind)
        # What the host did before it issued something is before that.
        .filter(pl.col(f"{ahead}stream") != HOST, pl.col(f"{ahead}ts_ns") > pl.col("known_ns"))
        .drop("known_ns")
    )


def _of_several_streams(of: pl.LazyFrame, others: pl.LazyFrame) -> pl.LazyFrame:
    """The buffers on which rows of both sorts come from two streams: of others nothing races."""
    buffer = ["rank", "buffer"]
    streams, other_streams = (rows.select(*buffer, "stream").unique() for rows in (of, others))
    pairs = streams.join(other_streams.rename({"stream": "other_stream"}), on=buffer)
    several = pairs.filter(pl.col("stream") != pl.col("other_stream"))
    return several.select(buffer).unique().collect().lazy()


def _nearest(
    of: pl.DataFrame, others: pl.DataFrame, strategy: str, by: tuple[str, ...]
) -> pl.LazyFrame:
    """Pairs of which both touch something, on two streams; of one moment it is the last or first.

    Both frames are in order of time, `others` with an order of those of one moment, too.
    """
    keys = ["rank", "buffer", *by]
    columns = [name for name in (*_ACCESS, "ref") if name in others.columns]
    renamed = others.lazy().select(
        *keys, *(pl.col(name).alias(f"other_{name}") for name in columns)
    )
    overlap = (pl.col("first") < pl.col("other_last")) & (pl.col("other_first") < pl.col("last"))
    return (
        of.lazy()
        .join_asof(
            renamed, left_on="ts_ns", right_on="other_ts_ns", by=keys, coalesce=False,
            strategy="backward" if strategy == "backward" else "forward",
            allow_exact_matches=False, check_sortedness=False,
        )
        .filter(overlap, pl.col("stream") != pl.col("other_stream"))
        .select(*of.columns, *(f"other_{name}" for name in columns))
    )  # fmt: skip


def _with_known(
    pairs: pl.LazyFrame, known: Callable[[], pl.LazyFrame], ahead: str, behind: str
) -> pl.LazyFrame:
    """Add known_ns: up to when the stream of the later access knows what that of the earlier did.

    What the host knows when it issues an access is known to that too.
    """
    clocks = known().sort("ts_ns").rename({"ts_ns": "_since_ns"})
    pairs = pairs.sort(f"{behind}ts_ns").with_columns(_host=pl.lit(HOST))
    for found, stream in (("_itself", f"{behind}stream"), ("_issuer", "_host")):
        pairs = pairs.join_asof(
            clocks.rename({"known_ns": found}),
            left_on=f"{behind}ts_ns", right_on="_since_ns", check_sortedness=False,
            by_left=["rank", stream, f"{ahead}stream"], by_right=list(SEEN_BY),
        ).drop("_since_ns", strict=False)  # fmt: skip
    best = pl.max_horizontal("_itself", "_issuer").fill_null(-2 * FAR_NS)
    return pairs.with_columns(known_ns=best).drop("_itself", "_issuer", "_host")


def knowledge(accesses: pl.LazyFrame) -> pl.LazyFrame:
    """What each stream knows of another: rank, stream, other, ts_ns (from when on), known_ns."""
    given = accesses.filter(pl.col("stream").is_not_null(), pl.col("ts_ns").is_not_null())
    rows = (
        given.filter(pl.col("op").is_in(SYNCHRONISES))
        .select("rank", pl.col("ts_ns").clip(-FAR_NS, FAR_NS), "stream", "op", "event")
        .sort("rank", "ts_ns")
        .collect()
    )
    streams = given.group_by("rank").agg(pl.col("stream").unique()).collect()
    of_rank = dict(streams.iter_rows())
    told = (
        (rank, *each)
        for rank, synced in groupby(rows.iter_rows(), itemgetter(0))
        for each in _told_by(synced, of_rank[rank])
    )
    return pl.LazyFrame(list(told), schema=_KNOWLEDGE, orient="row")


def _told_by(rows: Iterable[Row], streams: Iterable[str]) -> Iterator[tuple[str, str, int, int]]:
    """Go through the rows of a rank, moment by moment; tell what is news to a stream."""
    clocks: dict[str, Clock] = {stream: {} for stream in (*streams, HOST)}
    events: dict[str, Clock] = {}
    for ts_ns, of_moment in groupby(rows, itemgetter(1)):
        moment: list[Sync] = [(stream, op, event) for _, _, stream, op, event in of_moment]
        before = {stream: dict(clocks[stream]) for stream, _, _ in moment}
        _synchronise(moment, ts_ns, clocks, events)
        for stream, known in before.items():
            for other, known_ns in clocks[stream].items():
                if other not in {stream, HOST} and known.get(other) != known_ns:
                    yield stream, other, ts_ns, known_ns


def _synchronise(
    moment: list[Sync], ts_ns: int, clocks: dict[str, Clock], events: dict[str, Clock]
) -> None:
    """Bring the clocks to what the rows of a moment make of them, whatever their order."""
    recorded: defaultdict[str, set[str]] = defaultdict(set)
    for stream, op, event in moment:
        clocks[stream][stream] = ts_ns
        if op == "record" and event is not None:
            recorded[event].add(stream)
    is_alone, is_settled = len(moment) == 1, False  # one row knows all after one turn
    while not is_settled:
        is_settled = True
        for stream, op, event in moment:
            sources = [] if stream == HOST else [clocks[HOST] | {HOST: ts_ns}]
            if op != "record":
                sources += _awaited(op, event, ts_ns, recorded, clocks, events)
            for source in sources:
                is_settled &= not _join(clocks[stream], source) or is_alone
    for event, streams in recorded.items():
        events[event] = {}
        for stream in streams:
            _join(events[event], clocks[stream])


def _awaited(
    op: str,
    event: str | None,
    ts_ns: int,
    recorded: Mapping[str, set[str]],
    clocks: Mapping[str, Clock],
    events: Mapping[str, Clock],
) -> list[Clock]:
    """What is known to who waits: of an event, or of a stream or all of them as it synchronises."""
    if event is not None and event in recorded:
        return [clocks[stream] for stream in recorded[event]]
    if event is not None and event in events:
        return [events[event]]
    if op != "synchronize":
        return []  # nobody has recorded it yet: there is nothing to wait for
    streams = list(clocks) if event is None else [event]
    return [{**clocks.get(stream, {}), stream: ts_ns} for stream in streams]


def _join(clock: Clock, other: Clock) -> bool:
    """Let `clock` know what `other` knows; tell whether that was news."""
    news = {name: ns for name, ns in other.items() if ns > clock.get(name, EARLIEST_NS)}
    clock.update(news)
    return bool(news)
