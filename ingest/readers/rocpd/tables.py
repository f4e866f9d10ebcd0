"""Spans and counters of a process: names and tracks in place of their numbers."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ingest.readers.profile_tables import FORM, span_frame
from stepscope.ingest.readers.rocpd import decode
from stepscope.ingest.readers.rocpd.collect import Process
from stepscope.ingest.readers.rocpd.decode import CATEGORIES, COPY, DISPATCH, REGION, SAMPLE

NO_NAME = "(no name)"
_GPU = "GPU"


@dataclass(frozen=True, slots=True)
class NamedSpans:
    """Spans as `span_frame` has them, counters, and who the process is, in words."""

    spans: pl.DataFrame
    counters: pl.DataFrame
    process: str


def named_spans(process: Process, rank: int) -> NamedSpans:
    """Give what a process recorded its names, its tracks and its rank."""
    timed = process.timed()
    strings = _texts(process.whole("string", decode.STRINGS), "string")
    gpus = _gpus(process)
    counted = process.counted(timed)
    # A sample that only gives a counter its time is no instant of its own.
    is_counters = pl.col("event_id").is_in(counted["event_id"].implode()).fill_null(value=False)
    alone = timed.filter((pl.col("table") != SAMPLE) | ~is_counters)
    whose = _process(process)
    told = (
        alone.join(_named(strings, "name_id", "said"), on="name_id", how="left",
                   maintain_order="left")
        .join(_named(strings, "category_id", "kind"), on="category_id", how="left",
              maintain_order="left")
        .join(_kernels(process), on="kernel_id", how="left", maintain_order="left")
        .join(gpus, on="agent_id", how="left", maintain_order="left")
        .join(_threads(process), on="track_id", how="left", maintain_order="left")
    )  # fmt: skip
    is_instant = pl.col("table") == SAMPLE
    return NamedSpans(
        span_frame(
            told.select(
                *("ts_ns", "dur_ns", "args", "correlation"),
                pl.lit(rank, pl.Int32).alias("rank"),
                _track(whose).alias("track"),
                pl.coalesce(_message(), "kernel", "said", "called", "kind", pl.lit(NO_NAME)).alias(
                    "name"
                ),
                _category().alias("category"),
                pl.when(is_instant).then(pl.lit("instant")).when(pl.col("dur_ns").is_null())
                .then(pl.lit("unfinished")).otherwise(pl.lit("slice")).cast(FORM).alias("form"),
            )
        ),
        _counters(process, counted, gpus, rank),
        whose,
    )  # fmt: skip


def _counters(
    process: Process, counted: pl.DataFrame, gpus: pl.DataFrame, rank: int
) -> pl.DataFrame:
    named = process.whole("info_pmc", decode.PMC).unique("id", keep="first")
    own = named.rename({"id": "pmc_id", "units": "unit"})
    return (
        counted.join(own, on="pmc_id", how="left", maintain_order="left")
        .join(gpus, on="agent_id", how="left", maintain_order="left")
        .select(
            pl.lit(rank, pl.Int32).alias("rank"),
            "ts_ns",
            pl.coalesce("gpu", pl.lit(f"{_GPU} ?")).alias("track"),
            pl.coalesce("name", pl.format("counter {}", "pmc_id")).alias("name"),
            pl.when(pl.col("unit") != "").then("unit").alias("unit"),
            "value",
        )
    )


def _message() -> pl.Expr:
    """What a range of roctx was given, which stands at its event."""
    return pl.when(pl.col("table").is_in([REGION, SAMPLE])).then("message")


def _category() -> pl.Expr:
    category = pl.col("kind").str.to_lowercase()
    for pattern, known in CATEGORIES.items():
        is_it = pl.col("kind").str.contains(pattern)
        category = pl.when(is_it).then(pl.lit(known)).otherwise(category)
    own = pl.col("table").is_in([REGION, SAMPLE])
    return pl.when(own).then(category).otherwise("table")


def _track(whose: str) -> pl.Expr:
    """A queue of a GPU, its copies, or the thread that made a call."""
    gpu = pl.coalesce("gpu", pl.lit(f"{_GPU} ?"))
    queue = pl.format("{} / queue {}", gpu, pl.col("queue_id").cast(pl.String).fill_null("?"))
    thread = pl.coalesce("tid", "thread").cast(pl.String).fill_null("?")
    on_thread = pl.concat_str(pl.lit(f"{whose} / thread "), thread)
    table = pl.col("table")
    copies = pl.concat_str(gpu, pl.lit(" / copies"))
    return (
        pl.when(table == DISPATCH).then(queue).when(table == COPY).then(copies).otherwise(on_thread)
    )


def _process(process: Process) -> str:
    told = process.whole("info_process", decode.PROCESSES)["pid"].drop_nulls()
    return f"process {told[0]}" if len(told) else "process"


def _gpus(process: Process) -> pl.DataFrame:
    """What the agents are called that are GPUs (agent_id, gpu)."""
    told = process.whole("info_agent", decode.AGENTS).unique("id", keep="first")
    number = pl.col("type_index").cast(pl.String).fill_null("?")
    name = pl.concat_str(pl.lit(f"{_GPU} "), number)
    return told.filter(pl.col("type") == _GPU).select(agent_id="id", gpu=name)


def _kernels(process: Process) -> pl.DataFrame:
    told = process.whole("info_kernel_symbol", decode.SYMBOLS).unique("id", keep="first")
    named = (pl.when(pl.col(name) != "").then(name) for name in ("display_name", "kernel_name"))
    return told.select(kernel_id="id", kernel=pl.coalesce(*named))


def _threads(process: Process) -> pl.DataFrame:
    told = process.whole("track", decode.TRACKS).unique("id", keep="first")
    return told.select(track_id="id", thread="tid")


def _texts(rows: pl.DataFrame, text: str) -> pl.DataFrame:
    filled = pl.when(pl.col(text) != "").then(text)
    return rows.unique("id", keep="first").select("id", filled.alias("text"))


def _named(strings: pl.DataFrame, number: str, name: str) -> pl.DataFrame:
    return strings.select(pl.col("id").alias(number), pl.col("text").alias(name))
