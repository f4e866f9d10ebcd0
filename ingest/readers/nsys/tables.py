"""Names, tracks and ranks of an export's spans: which process each number is, and which thread."""

from __future__ import annotations

import json
from dataclasses import dataclass

import polars as pl

from stepscope.ingest.readers.encodings.sqlite import Database
from stepscope.ingest.readers.nsys.collect import PER_PROCESS, Collected, needed_texts
from stepscope.ingest.readers.nsys.decode import API_VERSION, GRAPHS
from stepscope.ingest.readers.profile_tables import span_frame

NO_NAME = "(no name)"
_PROCESSES = {"globalPid": "integer", "pid": "integer", "name": "text"}
_THREADS = {"globalTid": "integer", "nameId": "integer"}


@dataclass(frozen=True, slots=True)
class NamedSpans:
    """Spans as `span_frame` has them, the process of each rank, and what is to be said of them."""

    spans: pl.DataFrame
    processes: dict[str, str]
    notes: tuple[str, ...]


def named_spans(opened: Database, found: Collected, rank: int) -> NamedSpans:
    """Give each span its name, its track and the rank of its process.

    Each process that ran something on a device is a rank, in the order of their numbers; all others
    are of the first. Correlations are a process's own.
    """
    spans = found.frame()
    threads = opened.whole("ThreadNames", _THREADS).unique("globalTid", keep="last")
    numbers = pl.concat(
        [spans["text"], threads["nameId"], pl.Series([t for t, _ in found.domains.values()],
         dtype=pl.Int64)]
    ).unique().drop_nulls()  # fmt: skip
    texts = needed_texts(opened, numbers)
    processes = _process_names(opened, spans)
    ranks = _ranks(spans, rank)
    spans = (
        spans.join(texts, on="text", how="left", maintain_order="left")
        .join(processes, on="process", how="left", maintain_order="left")
        .join(_thread_names(threads, texts), on="thread", how="left", maintain_order="left")
        .join(_domain_args(found, texts), on="domain", how="left", maintain_order="left")
    )
    told = span_frame(
        spans.select(
            _rank(ranks, rank).alias("rank"),
            _track(spans).alias("track"),
            _name().alias("name"),
            pl.coalesce("args", "domain_args").alias("args"),
            *("category", "form", "ts_ns", "dur_ns"),
            _correlation(ranks).alias("correlation"),
        )
    )
    whose = dict(processes.iter_rows())
    named = {str(number): whose.get(process, "") for process, number in ranks.items()}
    return NamedSpans(told, named, tuple(_notes(found, named)))


def _name() -> pl.Expr:
    is_call = pl.col("category").is_in(["cuda_runtime", "cuda_driver"])
    text = pl.when(is_call).then(pl.col("value").str.replace(API_VERSION, "")).otherwise("value")
    return pl.coalesce("name", text, pl.lit(NO_NAME))


def _ranks(spans: pl.DataFrame, first: int) -> dict[int, int]:
    """The rank of each process that ran something on a device."""
    ran = spans.filter(pl.col("device").is_not_null())["process"].drop_nulls().unique().sort()
    return {process: first + place for place, process in enumerate(ran)}


def _rank(ranks: dict[int, int], first: int) -> pl.Expr:
    return pl.col("process").replace_strict(ranks, default=first, return_dtype=pl.Int32)


def _correlation(ranks: dict[int, int]) -> pl.Expr:
    """None for processes that are of another's rank: their numbers are not that one's."""
    is_own = pl.col("process").is_in(list(ranks)) | pl.col("process").is_null()
    return pl.col("correlation") if not ranks else pl.when(is_own).then("correlation")


def _process_names(opened: Database, spans: pl.DataFrame) -> pl.DataFrame:
    """What each process is called: by its name and number (process, process_name)."""
    told = opened.whole("PROCESSES", _PROCESSES).select(
        process=pl.col("globalPid") // PER_PROCESS, said="name"
    )
    numbers = spans.select(pl.col("process").drop_nulls().unique(maintain_order=True))
    known = told.drop_nulls().unique("process", keep="last")
    pid = (pl.col("process") % PER_PROCESS).cast(pl.String)
    called = pl.col("said").str.split("/").list.last()
    name = pl.concat_str(called.fill_null("process"), pid, separator=" ")
    return numbers.join(known, on="process", how="left", maintain_order="left").select(
        "process", process_name=name
    )


def _thread_names(threads: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    said = threads.join(texts, left_on="nameId", right_on="text", how="left")
    return said.select(thread="globalTid", thread_name="value").drop_nulls("thread")


def _domain_args(found: Collected, texts: pl.DataFrame) -> pl.DataFrame:
    by_number = dict(texts.iter_rows())
    named = {
        domain: said or by_number.get(text) for domain, (text, said) in found.domains.items()
        if domain
    }  # fmt: skip
    rows = [(domain, json.dumps({"domain": name})) for domain, name in named.items() if name]
    schema = {"domain": pl.Int64, "domain_args": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _track(spans: pl.DataFrame) -> pl.Expr:
    """A stream of a device, with its context where streams of several have one number."""
    tid = (pl.col("thread") % PER_PROCESS).cast(pl.String)
    thread = pl.concat_str(pl.col("thread_name").fill_null("thread"), tid, separator=" ")
    process = pl.col("process_name").fill_null("process")
    device = spans.select("device", "stream", "context").unique()
    is_ambiguous = device.select(pl.struct("device", "stream").is_duplicated()).to_series()
    doubtful = device.filter(is_ambiguous).select("device", "stream").unique()
    several = pl.struct("device", "stream").is_in(doubtful.to_struct().implode())
    context = pl.when(several).then(pl.format("context {} ", "context")).otherwise(pl.lit(""))
    stream = pl.format("GPU {} / {}stream {}", _said("device"), context, _said("stream"))
    # The host waits there, whatever runs in the stream meanwhile.
    waits = pl.when(pl.col("category") == "cuda_sync").then(pl.lit(" synchronization"))
    stream = pl.concat_str(stream, waits.otherwise(pl.lit("")))
    on_thread = pl.concat_str(process, thread.fill_null("no thread"), separator=" / ")
    return pl.when(pl.col("device").is_not_null()).then(stream).otherwise(on_thread)


def _said(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null("?")


def _notes(found: Collected, named: dict[str, str]) -> list[str]:
    notes = []
    if len(named) > 1:
        who = ", ".join(f"rank {rank} is {process}" for rank, process in list(named.items())[:64])
        notes.append(f"each process that used a device is a rank, by its number: {who}")
    if num := found.read[GRAPHS]:
        notes.append(f"{num:,} launches of CUDA graphs are traced as a whole: no kernel of theirs")
    return notes
