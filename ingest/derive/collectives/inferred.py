"""Collectives out of a PyTorch profile: what the host called, and the kernels that ran for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

import msgspec
import polars as pl

from stepscope.ingest.derive.collectives.spellings import (
    ANNOTATION,
    CALL,
    KERNEL,
    NOT_COLLECTIVE,
    ON_THE_HOST,
    PAIRWISE,
    is_kernel,
    kind_of,
    operation_of,
)
from stepscope.ingest.derive.launches import GPU_ANNOTATION
from stepscope.ingest.frames import polars_schema
from stepscope.ingest.schema import COLLECTIVE, COLLECTIVES, ON_DEVICE

FROM_CALLS = "record_param_comms"
FROM_NUMBERED_CALLS = "record_param_comms, with numbers of their group's own (Seq)"
FROM_ANNOTATIONS = "annotations such as nccl:all_reduce"
FROM_KERNELS = "names of NCCL kernels"
FROM_OPERATIONS = "operations of HCCL"
ELEMENT_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1,
    "Float8_e5m2fnuz": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4, "Long": 8,
    "Double": 8, "ComplexFloat": 8, "ComplexDouble": 16, "signed char": 1, "unsigned char": 1,
    "c10::Half": 2, "c10::BFloat16": 2, "int": 4, "float": 4, "long": 8, "double": 8,
    "INT8": 1, "UINT8": 1, "INT16": 2, "UINT16": 2, "INT32": 4, "UINT32": 4, "INT64": 8,
    "UINT64": 8, "FP16": 2, "BFP16": 2, "FP32": 4, "FP64": 8,
}  # fmt: skip
_EXTERNAL_ID = r'"External id"\s*:\s*(\d{1,18})\s*[,}]'
_HCCL_GROUP = r" / Group (.{1,200}) Communication(?: \d+)?(?: #\d+)?$"
_STREAM = r'"stream"\s*:\s*(\d{1,18})\s*[,}]'
_ON_DEVICE = (GPU_ANNOTATION, *ON_DEVICE)
_SCHEMA = {name: dtype for name, dtype in polars_schema(COLLECTIVES).items() if name != "rank"}
_ROW = pl.Schema({**_SCHEMA, "seq": pl.Int64(), "issued_ns": pl.Int64()})
_HOST = pl.Schema({**_ROW, "external": pl.Int64(), "base": pl.String(), "until_ns": pl.Int64()})
_GAPS = ("op", "dtype", "num_elements", "num_bytes", "dur_ns")
_REGULAR = ("Global rank start", "Global rank stride", "Group size")
_MOST_RANKS = 1 << 16
Args = dict[str, Any]


def tells_of_collectives(names: pl.Series) -> pl.Series:
    """Whether a slice of that name may be a collective's call or annotation, or its kernel."""
    return names.str.contains(f"{KERNEL}|^{CALL}$|{ANNOTATION}").fill_null(value=False)


def infer_collectives(
    candidates: pl.DataFrame, spans: pl.DataFrame, groups: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """Collectives in the order in which they were issued: the columns of `collectives` but rank.

    `candidates` are spans with args, `spans` all of them, `groups` the ranks of each process group.
    A collective is entered and left as its kernels begin and end, which are found by "External
    id", else by the launch that lies within the call. Of a call without a kernel it is known when
    it was issued, and not when it ended; work of the host itself lasts as long as its annotation.
    `ordinal` is the group's own sequence number where the profile has one for each of its calls,
    else a count from 0; sends and receives count by themselves.
    """
    slices = candidates.filter(pl.col("form") == "slice")
    category = pl.col("category").fill_null("").str.to_lowercase()
    # Host calls and Python frames can have the name of the kernel that they launch.
    kernels = slices.filter(is_kernel(pl.col("name")), category.is_in(("", *ON_DEVICE)))
    is_operation = pl.col("category") == COLLECTIVE
    if kernels.select(is_operation.any()).item():
        kernels = kernels.filter(is_operation)  # the others are what these consist of
    hosts = _hosts(slices.filter(~is_kernel(pl.col("name")), ~category.is_in(_ON_DEVICE)))
    ran = _with_host(kernels, hosts, spans)
    of_kernels = _of_kernels(ran.filter(pl.col("host").is_null()))
    found = pl.concat([_of_hosts(hosts, ran), of_kernels]).sort("issued_ns", maintain_order=True)
    return _ordered(_with_ranks(found, groups or {})).select(_SCHEMA.keys())


def _hosts(slices: pl.DataFrame) -> pl.DataFrame:
    """Calls, each with what its annotation adds, and annotations without a call, by `host`."""
    rows = [row for each in slices.iter_rows(named=True) if (row := _host(each))]
    said = pl.DataFrame(rows, schema=_HOST, orient="row").sort("issued_ns", maintain_order=True)
    is_call = pl.col("inferred") != FROM_ANNOTATIONS
    calls = said.filter(is_call).with_row_index("call")
    around = said.filter(~is_call).join_asof(
        calls.select("call", "base", "issued_ns", call_ends="until_ns"),
        on="issued_ns", by="base", check_sortedness=False,
    )  # fmt: skip
    is_within = (pl.col("issued_ns") < pl.col("call_ends")).fill_null(value=False)
    own = around.filter(is_within).unique("call", keep="first").select("call", "ts_ns", *_GAPS)
    filled = calls.join(own, on="call", how="left", suffix="_own", maintain_order="left")
    worked = pl.when(pl.col("dur_ns_own").is_not_null()).then("ts_ns_own").otherwise("ts_ns")
    filled = filled.with_columns(
        worked.alias("ts_ns"), *(pl.coalesce(name, f"{name}_own") for name in _GAPS)
    )
    both = pl.concat(
        [filled.select(_HOST.names()), around.filter(~is_within).select(_HOST.names())]
    )
    in_order = both.sort("issued_ns", maintain_order=True)
    is_other = pl.col("op").is_in(NOT_COLLECTIVE).fill_null(value=False)
    return in_order.filter(~is_other).with_row_index("host")


def _host(row: dict[str, Any]) -> dict[str, Any] | None:
    """What a call or an annotation says of a collective."""
    args = _args(row["args"])
    said = _call(args) if row["name"] == CALL else _annotation(row["name"], row["dur_ns"], args)
    return said | {
        "step": row["step"],
        "ts_ns": row["ts_ns"],
        "issued_ns": row["ts_ns"],
        "until_ns": row["ts_ns"] + row["dur_ns"],
        "base": row["base"],
        "external": _int(args.get("External id")),
    }


def _args(text: str | None) -> Args:
    try:
        args = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return args if isinstance(args, dict) else {}


def _call(args: Args) -> Args:
    num_elements, dtype = _int(args.get("In msg nelems")), _text(args.get("dtype"))
    number = _int(args.get("Seq"))
    return {
        "op": _text(args.get("Collective name")),
        "dtype": dtype,
        "num_elements": num_elements,
        "num_bytes": _num_bytes(num_elements, dtype),
        "group": _text(args.get("Process Group Name")),
        "expected_ranks": _ranks(args),
        "inferred": FROM_CALLS if number is None else FROM_NUMBERED_CALLS,
        "seq": number,
    }


def _annotation(name: str, dur_ns: int, args: Args) -> Args:
    """`nccl:_all_gather_base`, with the shapes and the type of its tensors where they are given."""
    backend, _, op = name.partition(":")
    types = args.get("Input type")
    dtype = _text(types[0]) if isinstance(types, list) and types else None
    num_elements = _num_elements(args.get("Input Dims"))
    return {
        "op": op,
        "dtype": dtype,
        "num_elements": num_elements,
        "num_bytes": _num_bytes(num_elements, dtype),
        "dur_ns": dur_ns if backend in ON_THE_HOST else None,
        "inferred": FROM_ANNOTATIONS,
    }


def _num_bytes(num_elements: int | None, dtype: str | None) -> int | None:
    size = ELEMENT_BYTES.get(dtype or "")
    return None if num_elements is None or size is None else num_elements * size


def _num_elements(dims: object) -> int | None:
    """Of all tensors together: `[[3, 4], [5]]` are 17; None where a shape is not known."""
    shapes = dims if isinstance(dims, list) else []
    sizes = [
        [_int(size) for size in shape] for shape in shapes if isinstance(shape, list) and shape
    ]
    known = [[size for size in shape if size is not None and size >= 0] for shape in sizes]
    is_known = sizes and all(
        len(all_) == len(some) for all_, some in zip(sizes, known, strict=True)
    )
    return _int(sum(prod(shape) for shape in known)) if is_known else None


def _with_host(kernels: pl.DataFrame, hosts: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Kernels with the host's call or annotation that they ran for, and when they were issued."""
    ran = kernels.with_columns(
        external=pl.col("args").str.extract(_EXTERNAL_ID).cast(pl.Int64),
        stream=pl.col("args").str.extract(_STREAM),
    )
    numbered = hosts.drop_nulls("external").unique("external", keep="none")
    ran = ran.join(numbered.select("external", "host"), on="external", how="left")
    launched = _launches(ran, hosts, spans)
    found = ran.join(launched, on="correlation", how="left", suffix="_launched")
    return found.with_columns(pl.coalesce("host", "host_launched")).sort("ts_ns")


def _launches(ran: pl.DataFrame, hosts: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """The launch of each kernel, by correlation: when it was, and the host's call it is within."""
    wanted = ran["correlation"].drop_nulls().unique()
    launches = (
        spans.select("correlation", "category", "ts_ns", "base")
        .filter(pl.col("correlation").is_in(wanted.implode()))
        .with_columns(pl.col("category", "base").cast(pl.String))
        .filter(~pl.col("category").fill_null("").str.to_lowercase().is_in(_ON_DEVICE))
        .sort("ts_ns")
        .unique("correlation", keep="first", maintain_order=True)
        .rename({"ts_ns": "launched_ns"})
    )
    within = launches.join_asof(
        hosts.select("host", "base", "issued_ns", "until_ns"),
        left_on="launched_ns", right_on="issued_ns", by="base", check_sortedness=False,
    )  # fmt: skip
    is_within = pl.col("launched_ns") < pl.col("until_ns")
    return within.select("correlation", "launched_ns", host=pl.when(is_within).then("host"))


def _of_hosts(hosts: pl.DataFrame, ran: pl.DataFrame) -> pl.DataFrame:
    """The host's collectives, entered and left when their kernels began and ended.

    A call outside of all tags, as of autograd's thread, is of the step that its kernels are of.
    """
    began, ended = pl.col("ts_ns").min(), (pl.col("ts_ns") + pl.col("dur_ns")).max()
    kernels = ran.drop_nulls("host").group_by("host").agg(
        began=began, lasted=ended - began, on=pl.col("stream").first(),
        named=operation_of(pl.col("name")).drop_nulls().first(),
        step_of_kernels=pl.when(pl.col("step").drop_nulls().n_unique() == 1).then(
            pl.col("step").drop_nulls().first()
        ),
    )  # fmt: skip
    return (
        hosts.join(kernels, on="host", how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("began", "ts_ns").alias("ts_ns"),
            pl.coalesce("lasted", "dur_ns").alias("dur_ns"),
            pl.coalesce("op", "named").alias("op"),
            pl.coalesce("step", "step_of_kernels").alias("step"),
            pl.col("on").alias("stream"),
        )
        .filter(pl.col("op").is_not_null() | pl.col("began").is_not_null())
        .select(_ROW.names())
    )


def _of_kernels(ran: pl.DataFrame) -> pl.DataFrame:
    """Kernels that ran for no call that is in the file, as what they say themselves."""
    rows = [_kernel(row) for row in ran.iter_rows(named=True)]
    named = pl.DataFrame({"op": ran.select(operation_of(pl.col("name"))).to_series()})
    said = pl.DataFrame(rows, schema=_ROW, orient="row")
    return said.with_columns(pl.coalesce("op", named["op"]).alias("op"))


def _kernel(row: dict[str, Any]) -> dict[str, Any]:
    issued_ns = row["ts_ns"] if row["launched_ns"] is None else row["launched_ns"]
    times = {"step": row["step"], "ts_ns": row["ts_ns"], "dur_ns": row["dur_ns"]}
    args = _args(row["args"])
    said = _call(args) | {"inferred": FROM_KERNELS}
    if row["category"] == COLLECTIVE:
        said |= _operation(args, row["track"])
    return said | times | {"issued_ns": issued_ns, "stream": row["stream"], "seq": None}


def _operation(args: Args, track: str) -> Args:
    """What msprof, or torch_npu through kineto, says of an operation of HCCL."""
    num_elements, dtype = _int(args.get("count")), _text(args.get("data_type"))
    group = re.search(_HCCL_GROUP, track)
    return {
        "dtype": dtype,
        "num_elements": num_elements,
        "num_bytes": _num_bytes(num_elements, dtype),
        "group": _text(args.get("commName")) or (group[1] if group else None),
        "inferred": FROM_OPERATIONS,
    }


def _with_ranks(found: pl.DataFrame, groups: Mapping[str, str]) -> pl.DataFrame:
    """Add the ranks of groups whose calls don't say them; of no group, those of the only one."""
    several = {ranks for ranks in groups.values() if "," in ranks}
    only = several.pop() if len(several) == 1 else None
    by_name = pl.col("group").replace_strict(groups, default=None, return_dtype=pl.String)
    unnamed = pl.when(pl.col("group").is_null()).then(pl.lit(only, pl.String))
    return found.with_columns(
        pl.coalesce("expected_ranks", by_name, unnamed).alias("expected_ranks")
    )


def _ordered(found: pl.DataFrame) -> pl.DataFrame:
    is_pairwise = kind_of(pl.col("op")).is_in(PAIRWISE).fill_null(value=False)
    own = [pl.coalesce("group", "stream").fill_null(""), is_pairwise.alias("_pairwise")]
    has_sequence = pl.col("seq").is_not_null().all() & (pl.col("seq").n_unique() == pl.len())
    is_numbered = pl.col("inferred") == FROM_NUMBERED_CALLS
    return found.with_columns(_numbered=has_sequence.over(own)).with_columns(
        pl.when("_numbered")
        .then("seq")
        .otherwise(pl.int_range(pl.len(), dtype=pl.Int64).over(own))
        .alias("ordinal"),
        pl.when(is_numbered & ~pl.col("_numbered"))
        .then(pl.lit(FROM_CALLS))
        .otherwise("inferred")
        .alias("inferred"),
    )


def _int(value: object) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 56
    return value if fits and isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _ranks(args: Args) -> str | None:
    """`"[0, 1]"` or `[0, 1]` as `0,1`; an abbreviated list by its start, stride and size."""
    listed = ranks_listed(args.get("Process Group Ranks"))
    start, stride, size = (_int(args.get(name)) for name in _REGULAR)
    if listed or start is None or stride is None or not size:
        return listed
    if not 0 < size <= _MOST_RANKS or (stride <= 0 and size > 1):
        return None
    return ",".join(str(start + place * stride) for place in range(size))


def ranks_listed(value: object) -> str | None:
    """`"[0, 1]"` or `[0, 1]` as `0,1`; None when unknown or abbreviated."""
    numbers = str(value).strip("[]").replace(" ", "")
    return numbers if numbers and all(number.isdigit() for number in numbers.split(",")) else None
