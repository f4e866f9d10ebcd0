"""Which step launched what: the join of a profile's two sides, the host and the device.

A launch and what it launched share a correlation; all kernels of a CUDA or HIP graph have that of
the graph's launch. Profiles without correlations have an "External id" in their place. Where the
launch is not in the file, the device's own copy of a step's annotation still tells what ran within
it on its stream.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from stepscope.ingest.derive.axis import NONE, Ints, Tracks, different, latest, numbered
from stepscope.ingest.schema import ON_DEVICE

GPU_ANNOTATION = "gpu_user_annotation"
FOREVER = 1 << 62
_NO_KERNEL = "no kernel is in the file: steps are as long as the CPU was in them"
_LOST, _OTHERS = "belong to no step: ", "threads without tags: "


def device_of(track: pl.Expr) -> pl.Expr:
    """The device that a stream's track belongs to: all but the last part of the track's name."""
    return track.str.replace(r" / [^/]*$", "")


def on_device(categories: pl.Series) -> pl.Series:
    """Whether spans of these categories are kernels, copies and fills that a device executed."""
    found = [text for text in different(categories) if text.lower() in ON_DEVICE]
    return categories.is_in(found).fill_null(value=False)


def of_host(categories: pl.Series) -> pl.Series:
    """Whether spans of these categories are not the device's copies of annotations."""
    return (categories != GPU_ANNOTATION).fill_null(value=True)


def tag_spans(spans: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Add `step` to spans within a step's tag on its track, and to the kernels that they launched.

    A thread without tags launches for the step that is under way meanwhile, if there is only one.
    """
    if steps.is_empty():
        return spans.with_columns(step=pl.lit(None, pl.Int64))
    _, base = numbered(spans["base"])
    is_on_device = on_device(spans["category"])
    told = spans.select("name", "category", "ts_ns", "dur_ns", "correlation").with_columns(
        is_on_device.alias("is_on_device"), step=_around(spans, steps, base)
    )
    for find in (_meanwhile, _launched, _annotated):
        rows, found = find(told, steps, base)
        told = told.with_columns(told["step"].scatter(rows, found))
    return spans.with_columns(told["step"])


def launch_notes(spans: pl.DataFrame, steps: pl.DataFrame) -> Iterator[str]:
    """What is to be known about the device of a profile that has steps, in a line each."""
    if steps.is_empty():
        return
    ran = spans.filter(on_device(spans["category"]))
    if ran.is_empty():
        yield _NO_KERNEL
        return
    alone = ran.filter(pl.col("step").is_null())
    lost = len(_lost(alone, spans))
    of = f"of {len(ran):,} kernels and copies"
    if lost:
        yield f"{lost:,} {of} {_LOST}nothing says what launched them"
    if outside := len(alone) - lost:
        yield f"{outside:,} {of} {_LOST}no step alone launched them"
    if others := _by_others(spans, steps):
        yield f"{_OTHERS}{others:,} of their calls count to the step under way"


def is_launch_note(note: str) -> bool:
    """Whether it is one of `launch_notes`, which hold of the steps that they were made of."""
    return note == _NO_KERNEL or _LOST in note or note.startswith(_OTHERS)


def _around(spans: pl.DataFrame, steps: pl.DataFrame, base: Tracks) -> pl.Series:
    """The step within whose tag a span begins, if there is one on its track."""
    ts_ns = spans["ts_ns"].to_numpy()
    found = latest(base, ts_ns, base[steps["span"].to_numpy()], steps["ts_ns"].to_numpy())
    found[ts_ns >= _until(steps)[found]] = NONE
    step = pl.Series("step", np.append(steps["step"].to_numpy(), NONE)[found])
    return step.set(step == NONE, None)


def _end_ns(spans: pl.DataFrame) -> pl.Series:
    return spans.select((pl.col("ts_ns") + pl.col("dur_ns")).fill_null(FOREVER)).to_series()


Found = tuple[pl.Series, pl.Series]


def _meanwhile(told: pl.DataFrame, steps: pl.DataFrame, base: Tracks) -> Found:
    """The calls of threads that have no tags, and the step within which alone they began."""
    tag_row = steps["span"].to_numpy()
    on_host = steps.filter(of_host(told["category"].gather(tag_row)))
    has_tags = pl.Series(np.isin(base, base[tag_row]))
    is_call = pl.col("correlation").is_not_null() & ~pl.col("is_on_device")
    calls = told.select("ts_ns", "step", "correlation", "is_on_device").with_row_index("row")
    calls = calls.filter(is_call & pl.col("step").is_null() & ~has_tags)
    ts_ns = calls["ts_ns"].to_numpy()
    last = np.searchsorted(on_host["ts_ns"].to_numpy(), ts_ns, "right") - 1
    num_open = last + 1 - np.searchsorted(np.sort(_end_ns(on_host).to_numpy()), ts_ns, "right")
    is_in = (num_open == 1) & (ts_ns < _until(on_host)[last])
    return calls["row"].filter(is_in), on_host["step"].gather(last[is_in])


def _launched(told: pl.DataFrame, steps: pl.DataFrame, base: Tracks) -> Found:
    """What was launched within a step and has none yet, and that step."""
    del steps, base
    tied = told.select("correlation", "step").with_row_index("row")
    tied = tied.filter(pl.col("correlation").is_not_null())
    launches = tied.filter(pl.col("step").is_not_null())
    others = tied.filter(pl.col("step").is_null())
    first, last = pl.col("step").min(), pl.col("step").max().alias("last")
    of_steps = launches.group_by("correlation").agg(first, last)
    own = of_steps.filter(pl.col("step") == pl.col("last"))
    found = others.select("row", "correlation").join(own, on="correlation")
    return found["row"], found["step"]


def _annotated(told: pl.DataFrame, steps: pl.DataFrame, base: Tracks) -> Found:
    """What was launched out of sight, within the device's copy of a step's tag on its stream.

    The n-th copy of a text on a stream is of the n-th step so called, where it has all of them.
    """
    rows = told.with_row_index("row").with_columns(base=pl.Series(base))
    is_copy = ~of_host(told["category"])
    place = pl.int_range(pl.len()).over("base", "name", order_by="ts_ns")
    number = pl.len().over("base", "name")
    name = pl.col("name").cast(pl.String)
    nth = pl.int_range(pl.len()).over("name")
    tags = rows[steps["span"]].select(name, place=nth, number=pl.len().over("name"))
    tags = tags.with_columns(own=steps["step"])
    copies = rows.filter(is_copy).with_columns(name, place=place, number=number)
    copies = copies.join(tags, on=["name", "place", "number"])
    if copies.is_empty():
        return copies["row"], copies["own"]
    alone = _lost(rows.filter(pl.col("is_on_device") & pl.col("step").is_null()), told)
    found = latest(
        alone["base"].to_numpy(), alone["ts_ns"].to_numpy(),
        copies["base"].to_numpy(), copies["ts_ns"].to_numpy(),
    )  # fmt: skip
    is_in = (found != NONE) & (alone["ts_ns"].to_numpy() < _until(copies)[found])
    return alone["row"].filter(is_in), copies["own"].gather(found[is_in])


def _lost(ran: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """What was executed and has no launch among `spans`."""
    launches = spans.filter(pl.col("correlation").is_not_null(), ~on_device(spans["category"]))
    return ran.join(launches, on="correlation", how="anti")


def _until(spans: pl.DataFrame) -> Ints:
    return np.append(_end_ns(spans).to_numpy(), NONE)


def _by_others(spans: pl.DataFrame, steps: pl.DataFrame) -> int:
    """How many calls have the step that was under way, and not one on their thread."""
    with_tags = spans["base"].gather(steps["span"]).unique()
    is_call = pl.col("correlation").is_not_null() & pl.col("step").is_not_null()
    calls = spans.filter(is_call, ~on_device(spans["category"]))
    return int((~calls["base"].is_in(with_tags.implode())).sum())
