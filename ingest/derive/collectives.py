"""Collectives out of a PyTorch profile: what the host called, else the kernels that ran."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from stepscope.ingest.frames import polars_schema
from stepscope.ingest.schema import COLLECTIVES

CALL = "record_param_comms"
NOT_COLLECTIVE = ("wait",)
FROM_CALLS = "record_param_comms"
FROM_KERNELS = "names of NCCL kernels"
ELEMENT_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1,
    "Float8_e5m2fnuz": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4, "Long": 8,
    "Double": 8, "ComplexFloat": 8, "ComplexDouble": 16,
}  # fmt: skip
_KERNEL = (
    r"^(?:nccl|rccl)(?:Dev)?Kernel_"
    r"(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|SendRecv|AllToAll)"
)
_EXTERNAL_ID = r'"External id"\s*:\s*(\d{1,18})\s*[,}]'
_STREAM = r'"stream"\s*:\s*(\d{1,18})\s*[,}]'
_SCHEMA = {name: dtype for name, dtype in polars_schema(COLLECTIVES).items() if name != "rank"}
Args = dict[str, Any]


def tells_of_collectives(names: pl.Series) -> pl.Series:
    """Whether a slice of that name may be a collective's call, or its kernel."""
    return names.str.contains(_KERNEL).fill_null(value=False) | (names == CALL).fill_null(
        value=False
    )


def infer_collectives(spans: pl.DataFrame) -> pl.DataFrame:
    """Collectives in order of time, of spans with args: the columns of `collectives` but rank.

    A call lasts until its kernel ends, found by "External id"; without any NCCL kernel in the
    file, as long as the call. `ordinal` is the group's own sequence number where the profile has
    one for each of its calls, else a count from 0.
    """
    kernels = spans.filter(pl.col("name").str.contains(_KERNEL) & (pl.col("form") == "slice"))
    calls = spans.filter((pl.col("name") == CALL) & (pl.col("form") == "slice"))
    found = _from_calls(calls, kernels)
    if found.is_empty():
        found = _from_kernels(kernels)
    return _ordered(found.sort("ts_ns", maintain_order=True)).select(_SCHEMA.keys())


def _from_calls(calls: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    rows = [_call(row, args) for row in calls.iter_rows(named=True) if (args := _said(row["args"]))]
    called = pl.DataFrame(rows, schema={**_SCHEMA, "seq": pl.Int64, "call": pl.Int64}, orient="row")
    if kernels.is_empty():
        return called
    ran = kernels.select(
        call=pl.col("args").str.extract(_EXTERNAL_ID).cast(pl.Int64),
        kernel_end=pl.col("ts_ns") + pl.col("dur_ns"),
        kernel_stream=pl.col("args").str.extract(_STREAM),
    )
    last = ran.group_by("call").agg(pl.col("kernel_end").max(), pl.col("kernel_stream").first())
    return called.join(last, on="call", how="left", maintain_order="left").with_columns(
        (pl.col("kernel_end") - pl.col("ts_ns")).clip(lower_bound=0).alias("dur_ns"),
        pl.col("kernel_stream").alias("stream"),
    )


def _said(text: str | None) -> Args | None:
    """The arguments of a call that joins a collective, else None."""
    try:
        args = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return None
    op = args.get("Collective name") if isinstance(args, dict) else None
    return args if isinstance(op, str) and op and op not in NOT_COLLECTIVE else None


def _call(row: dict[str, Any], args: Args) -> dict[str, Any]:
    num_elements, dtype = _int(args.get("In msg nelems")), _text(args.get("dtype"))
    size = ELEMENT_BYTES.get(dtype or "")
    return {
        "step": row["step"],
        "ts_ns": row["ts_ns"],
        "dur_ns": row["dur_ns"],
        "op": args["Collective name"],
        "dtype": dtype,
        "num_elements": num_elements,
        "num_bytes": None if num_elements is None or size is None else num_elements * size,
        "group": _text(args.get("Process Group Name")),
        "expected_ranks": _ranks(args.get("Process Group Ranks")),
        "inferred": FROM_CALLS,
        "seq": _int(args.get("Seq")),
        "call": _int(args.get("External id")),
    }


def _from_kernels(kernels: pl.DataFrame) -> pl.DataFrame:
    return kernels.select(
        "step",
        "ts_ns",
        "dur_ns",
        pl.col("name").str.extract(_KERNEL).str.to_lowercase().alias("op"),
        pl.col("args").str.extract(_STREAM).alias("stream"),
        pl.lit(FROM_KERNELS).alias("inferred"),
        *(pl.lit(None, _SCHEMA[name]).alias(name) for name in _SCHEMA if name not in _KNOWN),
        pl.lit(None, pl.Int64).alias("seq"),
    )


_KNOWN = ("step", "ts_ns", "dur_ns", "op", "stream", "inferred")


def _ordered(found: pl.DataFrame) -> pl.DataFrame:
    own = pl.coalesce("group", "stream").fill_null("")
    has_sequence = pl.col("seq").is_not_null().all() & (pl.col("seq").n_unique() == pl.len())
    return found.with_columns(
        pl.when(has_sequence.over(own))
        .then("seq")
        .otherwise(pl.int_range(pl.len(), dtype=pl.Int64).over(own))
        .alias("ordinal")
    )


def _int(value: object) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 56
    return value if fits and isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _ranks(value: object) -> str | None:
    """`"[0, 1]"` or `[0, 1]` as `0,1`; None when unknown or abbreviated."""
    numbers = str(value).strip("[]").replace(" ", "")
    return numbers if numbers and all(number.isdigit() for number in numbers.split(",")) else None
