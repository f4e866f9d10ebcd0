"""Spans of XPlane's events: named, on tracks, with their arguments, and the tags of steps.

A step is what `StepTraceAnnotation` marks: an event with `step_num`. Devices have their own copy of
these on a line "Steps", and what they ran on lines of streams, or where there are none, of XLA's
operations.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from stepscope.ingest.derive.launches import GPU_ANNOTATION
from stepscope.ingest.derive.step_tags import step_marker
from stepscope.ingest.limits import Limits, raised_by
from stepscope.ingest.readers.profile_tables import FORM, LIMIT_NS, span_frame
from stepscope.ingest.readers.xla_lines import (
    CORRELATION,
    DEVICE,
    OPERATIONS,
    STEP,
    STEPS,
    STREAM,
)
from stepscope.ingest.readers.xplane.collect import Collected, Line, Plane

NO_NAME = "(no name)"
FURTHER = "further lines"
_ENDS = {"start": ("_pt", "_p"), "finish": ("_ct", "_c")}
"""Kind and number of what an event passes on, and of what it was given: what flows go by."""
AT_A_TIME = 1 << 16
_NUMBER = r"^[0-9]{1,15}$"
_PS_PER_NS = 1000
_CALLS = {r"^hip": "hip_runtime", r"^cuda": "cuda_runtime", r"^cu[A-Z]": "cuda_driver",
          r"^\$": "python_function"}  # fmt: skip
_ARGS = {"row": pl.Int64, "args": pl.String}
_FLOWS = {"row": pl.Int64, "flow": pl.String, "end": pl.String}


@dataclass(frozen=True, slots=True)
class NamedSpans:
    """Spans as `span_frame` has them, flows by the row of their span, and how many had no time."""

    spans: pl.DataFrame
    flows: pl.DataFrame
    num_timeless: int


def named_spans(found: Collected, rank: int) -> NamedSpans:
    """Give events their names, tracks and arguments; those with absurd times are left out."""
    labels = _step_labels(found)
    parts, flows = (
        [span_frame({"ts_ns": pl.Series([], dtype=pl.Int64)})],
        [pl.DataFrame(schema=_FLOWS)],
    )
    num_rows = num_timeless = 0
    for plane, lines in zip(found.planes, _by_plane(found), strict=True):
        events, stats = _of_plane(plane, lines)
        is_timed = events["ts_ns"].is_between(-LIMIT_NS, LIMIT_NS, closed="none")
        num_timeless += len(events) - int(is_timed.sum())
        own = pl.DataFrame({"event": events["row"].filter(is_timed)})
        rows = own.with_row_index("row", num_rows)
        kept = stats.join(rows, on="event", how="inner", maintain_order="left")
        spans = _spans(plane, events.filter(is_timed), kept, labels, num_rows)
        parts.append(spans.with_columns(rank=pl.lit(rank, pl.Int32)))
        flows.append(_flows(kept))
        num_rows += len(spans)
    return NamedSpans(pl.concat(parts), pl.concat(flows), num_timeless)


def _by_plane(found: Collected) -> Iterator[list[tuple[str, Line]]]:
    """Lines of each plane, with what they are called there; beyond the limit all are called one."""
    left = found.limits.tracks
    for plane in found.planes:
        names = [line.display_name or line.name or f"line {line.number}" for line in plane.lines]
        wanted = Counter(names)
        numbered = [
            f"{name} {line.number}" if wanted[name] > 1 else name
            for name, line in zip(names, plane.lines, strict=True)
        ]
        shown = [*numbered[:left], *[FURTHER] * (len(numbered) - left)]
        left = max(0, left - len(numbered))
        yield list(zip(shown, plane.lines, strict=True))


def num_further(found: Collected) -> dict[str, int]:
    """How many events are shown on the track of further lines, counted as repaired."""
    limits: Limits = found.limits
    what = f"events of lines beyond {limits.tracks:,} shown as one ({raised_by('tracks')})"
    lines = [line for plane in found.planes for line in plane.lines]
    return {what: sum(line.num_events for line in lines[limits.tracks :])}


def _of_plane(plane: Plane, lines: list[tuple[str, Line]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All events of a plane by row, with the line's name and times, and their arguments."""
    events, stats, num = [], [], 0
    for label, line in lines:
        own, told = line.drained()
        until = pl.col("offset_ps") + pl.col("dur_ps")
        begins, ends = (pl.col("offset_ps") // _PS_PER_NS), until // _PS_PER_NS
        events.append(
            own.select(
                "name", line=pl.lit(label), kind=pl.lit(line.name), ts_ns=begins + line.since_ns,
                dur_ns=ends - begins,
            )
        )  # fmt: skip
        stats.append(told.with_columns(pl.col("event") + num))
        num += len(own)
    if not events:
        events, stats = [_none()], [Line().frames()[1]]
    keys = _names(plane.keys, "key", "said")
    told = pl.concat(stats).join(keys, on="key", how="left", maintain_order="left")
    refs = _names(plane.keys, "ref", "meant")
    told = told.with_columns(ref=pl.col("number").cast(pl.Int64, strict=False)).join(
        refs, on="ref", how="left", maintain_order="left"
    )
    named = pl.concat(events).join(
        _names(plane.names, "name", "called"), on="name", how="left", maintain_order="left"
    )
    return named.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64)), told


def _none() -> pl.DataFrame:
    texts, numbers = dict.fromkeys(("line", "kind"), pl.String), ("ts_ns", "dur_ns")
    return pl.DataFrame(schema={"name": pl.Int64, **texts, **dict.fromkeys(numbers, pl.Int64)})


def _names(names: Mapping[int, str], number: str, name: str) -> pl.DataFrame:
    schema = {number: pl.Int64, name: pl.String}
    return pl.DataFrame([*names.items()], schema=schema, orient="row")


def _spans(
    plane: Plane, events: pl.DataFrame, stats: pl.DataFrame, labels: Mapping[int, str], first: int
) -> pl.DataFrame:
    events = events.with_columns(
        pl.int_range(first, first + len(events), dtype=pl.Int64, eager=True).alias("row")
    )
    told = (
        events.join(_args(stats), on="row", how="left", maintain_order="left")
        .join(_number(stats, CORRELATION), on="row", how="left", maintain_order="left")
        .join(_number(stats, STEP), on="row", how="left", maintain_order="left")
    )
    is_device = plane.name.startswith(DEVICE)
    name = pl.col("called").fill_null(NO_NAME)
    spans = told.select(
        *("ts_ns", "dur_ns", "args"),
        pl.concat_str(pl.lit(plane.name or "plane"), "line", separator=" / ").alias("track"),
        name.alias("name"),
        pl.lit("slice", FORM).alias("form"),
        (_ran(plane, stats, told) if is_device else _called()).alias("category"),
        pl.col(CORRELATION).alias("correlation"),
        pl.lit(plane.name if is_device else None, pl.String).alias("base"),
        pl.col(STEP).alias("step_num"),
        pl.col("kind") == STEPS,
    )
    return span_frame(spans.with_columns(_tags(spans, labels, is_device=is_device)))


def _called() -> pl.Expr:
    """The category of what a thread did, by its name, as torch.profiler calls it."""
    category = pl.lit(None, pl.String)
    for pattern, known in _CALLS.items():
        category = (
            pl.when(pl.col("called").str.contains(pattern)).then(pl.lit(known)).otherwise(category)
        )
    return category


def _ran(plane: Plane, stats: pl.DataFrame, told: pl.DataFrame) -> pl.Expr:
    """The category of what a device did: its copy of a step, a kernel, or its line's name."""
    has_streams = any(line.name.startswith(STREAM) for line in plane.lines)
    is_own = pl.col("kind").str.starts_with(STREAM) if has_streams else pl.col("kind") == OPERATIONS
    copies, fills = (
        told["row"].is_in(stats.filter(pl.col("said") == f"{what}_details")["row"].implode())
        for what in ("memcpy", "memset")
    )
    name = pl.col("called")
    copied = pl.when(copies | name.str.starts_with("Memcpy")).then(pl.lit("gpu_memcpy"))
    filled = copied.when(fills | name.str.starts_with("Memset")).then(pl.lit("gpu_memset"))
    work = filled.otherwise(pl.lit("kernel"))
    is_step = pl.col("kind") == STEPS
    return pl.when(is_step).then(pl.lit(GPU_ANNOTATION)).when(is_own).then(work).otherwise("kind")


def _step_labels(found: Collected) -> dict[int, str]:
    """What the host calls the step of each number."""
    labels: dict[int, str] = {}
    for plane in found.planes:
        if plane.name.startswith(DEVICE):
            continue
        numbers = {key for key, name in plane.keys.items() if name == STEP}
        if not numbers:
            continue
        for line in plane.lines:
            events, stats = line.frames()
            own = stats.filter(pl.col("key").is_in(numbers))
            for event, number in own.select(
                "event", pl.col("number").cast(pl.Int64, strict=False)
            ).iter_rows():
                if number is not None:
                    labels.setdefault(number, plane.names.get(events["name"][event], ""))
    return labels


def _tags(spans: pl.DataFrame, labels: Mapping[int, str], *, is_device: bool) -> pl.Series:
    """The tags of steps: on a device those of its line of steps, named as the host names them."""
    tags = pl.repeat(None, len(spans), dtype=pl.String, eager=True).alias("tag")
    rows = spans.with_row_index("row")
    if is_device:
        own = rows.filter(pl.col("kind") & pl.col("name").str.contains(_NUMBER))
        found = own.select("row", pl.col("name").cast(pl.Int64).alias("number")).rows()
        told = [(row, step_marker(labels.get(number, STEPS), number)) for row, number in found]
    else:
        own = rows.filter(pl.col("step_num") >= 0)
        said = own.select("row", "name", "step_num").rows()
        told = [(row, step_marker(name, number)) for row, name, number in said]
    return tags.scatter([row for row, _ in told], [tag for _, tag in told]) if told else tags


def _number(stats: pl.DataFrame, key: str) -> pl.DataFrame:
    """An argument that is a whole number, of each row."""
    own = stats.filter((pl.col("said") == key) & pl.col("kind").is_in(["unsigned", "signed"]))
    number = pl.col("number").cast(pl.Int64, strict=False).alias(key)
    return own.select(pl.col("row").cast(pl.Int64), number).unique("row", keep="first")


def _args(stats: pl.DataFrame) -> pl.DataFrame:
    """All arguments of each row as one object in JSON; `stats` are in the order of rows.

    They are written some at a time: before they are one text they take several times as much.
    """
    parts = [pl.DataFrame(schema=_ARGS)]
    begin = 0
    while begin < len(stats):
        last = min(begin + AT_A_TIME, len(stats)) - 1
        end = int(stats["row"].search_sorted(stats["row"][last], side="right"))
        parts.append(_written(stats[begin:end]))
        begin = end
    return pl.concat(parts)


def _written(stats: pl.DataFrame) -> pl.DataFrame:
    kind, number = pl.col("kind"), stats["number"].to_numpy()
    real = pl.Series("real", number.view("float64"))
    signed = pl.Series("signed", number.view("int64"))
    finite = pl.when(real.is_finite()).then(real.cast(pl.String)).otherwise(pl.lit("null"))
    text = pl.when(kind == "ref").then(pl.col("meant").fill_null("")).otherwise("text")
    texts = stats.select(text.alias("text"))["text"]
    value = (
        pl.when(kind == "double").then(finite)
        .when(kind == "unsigned").then(pl.col("number").cast(pl.String))
        .when(kind == "signed").then(signed.cast(pl.String))
        .otherwise(_quoted(texts))
    )  # fmt: skip
    key = stats.select(pl.coalesce("said", pl.format("argument {}", "key")).alias("key"))["key"]
    field = pl.concat_str(_quoted(key), pl.lit(": "), value)
    return (
        stats.select(pl.col("row").cast(pl.Int64), field.alias("field"))
        .group_by("row", maintain_order=True)
        .agg(pl.concat_str(pl.lit("{"), pl.col("field").str.join(", "), pl.lit("}")).alias("args"))
        .select("row", pl.col("args"))
    )


def _quoted(texts: pl.Series) -> pl.Series:
    """Texts as JSON has them."""
    distinct = texts.drop_nulls().unique(maintain_order=True)
    quoted = [json.dumps(each, ensure_ascii=False) for each in distinct]
    return texts.replace_strict(distinct, quoted, default=None, return_dtype=pl.String)


def _flows(stats: pl.DataFrame) -> pl.DataFrame:
    """Ends of flows: what passes something on begins one, what was given it ends it."""
    parts = [pl.DataFrame(schema=_FLOWS)]
    for end, (kind, number) in _ENDS.items():
        kinds, numbers = (_number(stats, key) for key in (kind, number))
        both = kinds.join(numbers, on="row", how="inner", maintain_order="left")
        flow = pl.format("{}/{}", kind, number)
        parts.append(both.select("row", flow.alias("flow"), pl.lit(end).alias("end")))
    return pl.concat(parts)
