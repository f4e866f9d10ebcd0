"""Spans of rocprofv3's records: names and tracks in place of their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.ingest.readers.profile_tables import FORM, span_frame
from stepscope.ingest.readers.rocprofv3.collect import Collected
from stepscope.ingest.readers.rocprofv3.decode import COPY, DISPATCH, MARKERS, number

NO_NAME = "(no name)"
MARK = "roctxMarkA"
ON_DEVICE = (DISPATCH, COPY)


def spans_of(found: Collected, first_rank: int) -> tuple[pl.DataFrame, int]:
    """Spans as `span_frame` has them, and how many ended before they began.

    Each process is a rank, in the order of the file.
    """
    rows = found.rows.frame().with_row_index("row")
    ranks = _ranks(found, rows, first_rank)
    pids = {process: _pid(found.about.get(process, {})) for process in ranks}
    named = (
        rows.join(_by_number(found.kernels, "kernel", "kernel_name"), on=["process", "kernel"],
                  how="left")
        .join(_by_number(found.markers, "correlation", "message"), on=["process", "correlation"],
              how="left")
        .join(_operations(found), on=["process", "kind", "operation"], how="left")
        .join(_by_number(found.gpus, "agent", "gpu"), on=["process", "agent"], how="left")
        .sort("row")
    )  # fmt: skip
    length = pl.col("ends_ns") - pl.col("ts_ns")
    spans = span_frame(
        named.select(
            "category", "ts_ns", "correlation", "args",
            pl.col("process").replace_strict(ranks, return_dtype=pl.Int32).alias("rank"),
            _track(pids).alias("track"),
            _name().alias("name"),
            _form().alias("form"),
            pl.when(~_is_mark()).then(length.clip(lower_bound=0)).alias("dur_ns"),
        )
    )  # fmt: skip
    return spans, int(named.select((length < 0).sum()).item())


def counters_of(found: Collected, first_rank: int) -> tuple[pl.DataFrame, int]:
    """What kernels counted, each where its kernel began; and how many rows say no time.

    Where a record does not say when its kernel ran, the kernel of its correlation does.
    """
    rows = found.rows.frame()
    ranks = _ranks(found, rows, first_rank)
    began = (
        rows.filter(pl.col("category") == DISPATCH)
        .select("process", "correlation", began="ts_ns")
        .drop_nulls()
        .unique(["process", "correlation"], keep="none")
    )
    counted = (
        found.counted.frame()
        .join(began, on=["process", "correlation"], how="left", maintain_order="left")
        .join(_by_number(found.counters, "counter", "called"), on=["process", "counter"],
              how="left", maintain_order="left")
        .join(_by_number(found.gpus, "agent", "gpu"), on=["process", "agent"], how="left",
              maintain_order="left")
        .with_columns(ts_ns=pl.coalesce("ts_ns", "began"))
    )  # fmt: skip
    timed = counted.drop_nulls("ts_ns")
    told = timed.select(
        pl.col("process").replace_strict(ranks, return_dtype=pl.Int32).alias("rank"),
        "ts_ns",
        _gpu().alias("track"),
        pl.coalesce("called", pl.format("counter {}", "counter")).alias("name"),
        "value",
    )
    return told, len(counted) - len(timed)


def _ranks(found: Collected, rows: pl.DataFrame, first_rank: int) -> dict[int, int]:
    return {process: first_rank + place for place, process in enumerate(_processes(found, rows))}


def _processes(found: Collected, rows: pl.DataFrame) -> list[int]:
    counted = found.counted.frame()["process"]
    return sorted({*rows["process"].unique(), *counted.unique(), *found.about})


def _pid(about: Mapping[str, Any]) -> str:
    pid = number(about.get("pid"))
    return "process" if pid is None else f"process {pid}"


def _by_number(names: Mapping[tuple[int, int], object], number: str, name: str) -> pl.DataFrame:
    schema = {"process": pl.Int64, number: pl.Int64, name: pl.String}
    rows = [(*key, str(said)) for key, said in names.items()]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _operations(found: Collected) -> pl.DataFrame:
    numbers = dict.fromkeys(("process", "kind", "operation"), pl.Int64)
    rows = [(*key, said) for key, said in found.operations.items()]
    return pl.DataFrame(rows, schema={**numbers, "called": pl.String}, orient="row")


def _name() -> pl.Expr:
    is_marker = pl.col("category") == MARKERS
    message = pl.when(is_marker).then("message")
    return pl.coalesce("kernel_name", message, "called", pl.lit(NO_NAME))


def _is_mark() -> pl.Expr:
    return ((pl.col("category") == MARKERS) & (pl.col("called") == MARK)).fill_null(value=False)


def _form() -> pl.Expr:
    ended = pl.when(pl.col("ends_ns").is_null()).then(pl.lit("unfinished"))
    return (
        pl.when(_is_mark())
        .then(pl.lit("instant"))
        .otherwise(ended.otherwise(pl.lit("slice")))
        .cast(FORM)
    )


def _track(pids: Mapping[int, str]) -> pl.Expr:
    """A queue of a GPU, its copies, or the thread that made a call."""
    gpu = _gpu()
    queue = pl.concat_str(
        gpu, pl.format(" / queue {}", pl.col("queue").cast(pl.String).fill_null("?"))
    )
    process = pl.col("process").replace_strict(pids, return_dtype=pl.String)
    thread = pl.col("thread").cast(pl.String).fill_null("?")
    on_thread = pl.concat_str(process, pl.lit(" / thread "), thread)
    category = pl.col("category")
    on_device = pl.when(category == DISPATCH).then(queue)
    return (
        on_device.when(category == COPY)
        .then(pl.concat_str(gpu, pl.lit(" / copies")))
        .otherwise(on_thread)
    )


def _gpu() -> pl.Expr:
    return pl.concat_str(pl.lit("GPU "), pl.col("gpu").fill_null("?"))
