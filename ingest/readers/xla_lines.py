"""What XProf's trace viewer says of devices and steps in Chrome JSON, as JAX writes it as well.

Processes are the planes of an XPlane (`/device:GPU:0`, `/host:CPU`), threads their lines. No event
has a category: which line it is on says what it is. Arguments are texts, `step_num` and
`correlation_id` among them. The format: `xla/tsl/profiler/convert/trace_events_to_json.cc`.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.axis import different
from stepscope.ingest.derive.launches import GPU_ANNOTATION
from stepscope.ingest.derive.step_tags import step_marker
from stepscope.ingest.readers.args_numbers import number_in

DEVICE, HOST = "/device:", "/host:"
STREAM, OPERATIONS, STEPS = "Stream #", "XLA Ops", "Steps"
STEP, CORRELATION = "step_num", "correlation_id"
_SEPARATOR = " / "
_NUMBER = r"^[0-9]{1,15}$"
_IS_TOLD = f'"(?:{STEP}|{CORRELATION})"'
NUMBERS = {"row": pl.UInt32(), STEP: pl.Int64(), CORRELATION: pl.Int64()}


def numbers_of(slices: pl.DataFrame, has_category: pl.Series) -> pl.DataFrame:
    """The numbers of steps and of launches among the args of slices without a category, by row."""
    if has_category.all():
        return pl.DataFrame(schema=NUMBERS)
    rows = slices.select("args").with_row_index("row").filter(~has_category)
    told = rows.filter(pl.col("args").str.contains(_IS_TOLD).fill_null(value=False))
    return told.select(
        "row", *(number_in(told["args"], key).alias(key) for key in (STEP, CORRELATION))
    )


def with_devices(spans: pl.DataFrame, numbers: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Spans with what their lines say of them, and the tags of steps, null where one has none.

    `spans` are as `chrome_tables` has them; all but those of XProf's planes are left as they are.
    """
    no_tags = pl.repeat(None, len(spans), dtype=pl.String, eager=True).alias("tag")
    tracks = pl.Series(different(spans["base"]), dtype=pl.String)
    if not tracks.str.contains(f"^(?:{DEVICE}|{HOST})").any():
        return spans, no_tags
    told = _with_lines(spans, tracks, numbers)
    return (
        spans.with_columns(
            told["correlation"],
            _as_enum(told["plane_base"]).alias("base"),
            _as_enum(told.select(_category(tracks))["category"]).alias("category"),
        ),
        _tags(told, no_tags),
    )


def _with_lines(spans: pl.DataFrame, tracks: pl.Series, numbers: pl.DataFrame) -> pl.DataFrame:
    """Names as text, plane and line of each span, and its numbers."""
    lines = pl.DataFrame({"base": tracks}).with_columns(
        pl.col("base").str.splitn(_SEPARATOR, 2).struct.rename_fields(["plane", "line"]).alias("at")
    ).unnest("at")  # fmt: skip
    is_device = pl.col("plane").str.starts_with(DEVICE).fill_null(value=False)
    return (
        spans.select(pl.col("name", "category", "base").cast(pl.String), "correlation")
        .with_row_index("row")
        .join(lines, on="base", how="left", maintain_order="left")
        .join(numbers, on="row", how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("correlation", CORRELATION).alias("correlation"),
            is_device.alias("is_device"),
            pl.when(is_device).then("plane").otherwise("base").alias("plane_base"),
        )
    )


def _category(tracks: pl.Series) -> pl.Expr:
    """The category that a profiler of torch's gives what a device ran, by its line."""
    of_device = tracks.filter(tracks.str.starts_with(DEVICE))
    with_streams = (
        of_device.filter(of_device.str.contains(f"{_SEPARATOR}{STREAM}", literal=True))
        .str.split(_SEPARATOR).list.first().unique()
    )  # fmt: skip
    line, name = pl.col("line"), pl.col("name")
    has_streams = pl.col("plane").is_in(with_streams.implode())
    is_own = pl.when(has_streams).then(line.str.starts_with(STREAM)).otherwise(line == OPERATIONS)
    copied = pl.when(name.str.starts_with("Memcpy")).then(pl.lit("gpu_memcpy"))
    work = copied.when(name.str.starts_with("Memset")).then(pl.lit("gpu_memset"))
    said = (
        pl.when(line == STEPS).then(pl.lit(GPU_ANNOTATION))
        .when(is_own).then(work.otherwise(pl.lit("kernel")))
        .otherwise(line)
    )  # fmt: skip
    on_device = pl.col("is_device") & pl.col("category").is_null()
    return pl.when(on_device).then(said).otherwise("category").alias("category")


def _tags(told: pl.DataFrame, none: pl.Series) -> pl.Series:
    """What the host marked with `step_num`, and the device's own line of steps, named as there."""
    on_host = pl.col("plane").str.starts_with(HOST) & (pl.col(STEP) >= 0)
    marked = told.filter(on_host.fill_null(value=False)).select("row", "name", STEP).rows()
    labels: dict[int, str] = {}
    for _, name, number in marked:
        labels.setdefault(number, name)
    on_device = pl.col("is_device") & (pl.col("line") == STEPS)
    own = told.filter(on_device.fill_null(value=False) & pl.col("name").str.contains(_NUMBER))
    copies = own.select("row", pl.col("name").cast(pl.Int64)).rows()
    tags = [(row, step_marker(name, number)) for row, name, number in marked]
    tags += [(row, step_marker(labels.get(number, STEPS), number)) for row, number in copies]
    return none.scatter([row for row, _ in tags], [tag for _, tag in tags]) if tags else none


def _as_enum(texts: pl.Series) -> pl.Series:
    return texts.cast(pl.Enum(texts.drop_nulls().unique(maintain_order=True)))
