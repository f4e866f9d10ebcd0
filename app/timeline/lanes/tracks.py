"""The tracks: spans of processes, threads and streams, what is nested below what encloses it.

A profile has them by what they are of: the streams of each device, those on which collectives run
alone, the threads of the CPU, and the Python functions of all threads, apart from what they call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.analyzers.latency.kernel_kinds import kind_of
from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import (
    LaneName,
    LaneSpans,
    Subject,
    clipped,
    end_of,
    ordered,
    placed,
    several_ranks,
    span_rows,
)
from stepscope.app.timeline.lanes.texts_by_number import TextsByNumber, numbers
from stepscope.app.timeline.profile.colouring import by_category, names_that_took_most
from stepscope.app.timeline.profile.top_names import TopName
from stepscope.ingest.derive.launches import GPU_ANNOTATION
from stepscope.ingest.schema import ON_DEVICE
from stepscope.ingest.trace import Trace

STREAMS, COLLECTIVES, THREADS, OTHERS, PYTHON = (
    "GPU streams", "collectives", "CPU threads", "tracks", "Python",
)  # fmt: skip
SAYS: Mapping[str, str] = {
    STREAMS: "kernels and copies, by device and stream",
    COLLECTIVES: "streams on which collectives run alone",
    THREADS: "operations, annotations and calls, by thread",
    OTHERS: "processes, threads and streams",
    PYTHON: "Python functions, by thread",
}
"""The sections of tracks, and what is in each."""
_SECTIONS = (*SAYS,)
PYTHON_FUNCTION = "python_function"
OF_THREADS = (
    "cpu_op", "user_annotation", "cpu_instant_event", "overhead", "nvtx", "operator",
    "cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "hip_api", "runtime", "driver",
)  # fmt: skip
"""Categories of what a thread of the CPU does, in small letters."""
NUMBERED = r" #[0-9]+$"
"""What the reader adds to the name of a track whose slices overlap in part."""
KEY = ["rank", "track"]
TEXTS = ("track", "category", "name")


@dataclass(frozen=True, slots=True)
class Tracks:
    """Lanes by section, and the names that took most of what the device executed.

    `share_of` says of what the names took their shares; empty where no span has a colour by its
    name. `called` says what each state stands for that spans are shown in: a name, or categories.
    """

    sections: dict[str, LaneSpans]
    top: tuple[TopName, ...]
    share_of: str
    called: dict[int, str]


def placed_spans(trace: Trace) -> pl.DataFrame:
    """All spans that have a place, read once, their texts by number; an instant is 0 ns long."""
    never_ended = pl.col("form") == "unfinished"
    dur_ns = pl.when(never_ended).then("dur_ns").otherwise(pl.col("dur_ns").fill_null(0))
    found = placed(trace.as_held("spans"), "track")
    texts = [name for name, kind in found.collect_schema().items() if kind == pl.String]
    spans = found.select("rank", "ref", "ts_ns", dur_ns, *TEXTS).collect()
    if spans["category"].null_count():
        spans = spans.with_columns(pl.col("category").cast(pl.String).fill_null(""))
        texts.append("category")
    return spans.with_columns(pl.col(name).cast(numbers()) for name in TEXTS if name in texts)


def lay_out_tracks(trace: Trace, spans: pl.DataFrame, last_ns: int) -> Tracks:
    """Lay out the spans of `placed_spans` by section; what never ended reaches `last_ns`.

    Every span is on one lane.
    """
    categories = TextsByNumber.of(spans["category"])
    is_executed = categories.are({each for each in categories.texts if each.lower() in ON_DEVICE})
    executed = spans.select("ref", "name", "dur_ns")[np.flatnonzero(is_executed)]
    named = names_that_took_most(trace, executed.cast({"name": pl.String}))
    # Names of tracks are compared once; from there on a track is a number, in the order of lanes.
    tracks = ordered(_sections(spans, is_executed)).rename({"lane": "number"})
    known = tracks.cast({"track": spans.schema["track"]})
    number = spans.select(KEY).join(known, on=KEY, how="left", maintain_order="left")["number"]
    section = tracks["section"].to_numpy()[number.to_numpy()]
    section[categories.are({PYTHON_FUNCTION})] = _SECTIONS.index(PYTHON)
    state = by_category(categories)
    state[np.searchsorted(spans["ref"].to_numpy(), named.rows)] = named.states
    ranks = spans["rank"].unique().to_list()
    by_section = (
        spans.select(
            "ref",
            number,
            start=clipped(pl.col("ts_ns")),
            end=end_of(pl.col("ts_ns"), pl.col("dur_ns"), last_ns),
        )
        .with_columns(state=pl.Series(state), section=pl.Series(section))
        .partition_by("section", as_dict=True)
    )
    sections = {
        name: _laid_out(by_section[at,], tracks, ranks, name)
        for at, name in enumerate(_SECTIONS)
        if (at,) in by_section
    }
    return Tracks(sections, named.top, named.share_of, _called(sorted(categories.texts), named.top))


def _called(categories: list[str], top: tuple[TopName, ...]) -> dict[int, str]:
    called: dict[int, list[str]] = {}
    for category in categories:
        own = called.setdefault(palette.shade(category), [])
        if category and category.lower() not in ON_DEVICE:
            own.append(plain(category))
    named = {each.state: each.name for each in top}
    return {state: ", ".join(names[:3]) or "span" for state, names in called.items()} | named


def _laid_out(
    spans: pl.DataFrame, tracks: pl.DataFrame, ranks: list[int], section: str
) -> LaneSpans:
    """A lane for each track of which spans are in a section."""
    number = spans["number"].to_numpy()
    is_there = np.zeros(len(tracks), np.bool_)
    is_there[number] = True
    named = tracks.filter(is_there).select(KEY).iter_rows()
    names = tuple(_name(rank, track, ranks, section) for rank, track in named)
    lane = (np.cumsum(is_there, dtype=np.uint32) - 1)[number]
    return LaneSpans(names, [span_rows(spans.with_columns(lane=pl.Series(lane)), "spans")])


def _sections(spans: pl.DataFrame, is_executed: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """The place in `_SECTIONS` of each track, by what else than Python functions is on it."""
    base = pl.col("track").str.replace(NUMBERED, "")
    name = pl.when(pl.Series(is_executed)).then("name")
    seen = spans.select(*KEY, "category", name).unique().cast(dict.fromkeys(TEXTS, pl.String))
    seen = seen.with_columns(pl.col("category").str.to_lowercase(), base=base)
    is_collective = (kind_of(pl.col("name"), pl.col("category")) == "communication").fill_null(
        value=False
    )
    executed = pl.col("category").is_in(ON_DEVICE)
    of = seen.group_by("rank", "base").agg(
        is_alone=is_collective.filter(executed).all() & executed.any(),
        is_stream=(executed | (pl.col("category") == GPU_ANNOTATION)).any(),
        is_thread=pl.col("category").is_in(OF_THREADS).any(),
    )
    section = (
        pl.when("is_alone").then(_SECTIONS.index(COLLECTIVES))
        .when("is_stream").then(_SECTIONS.index(STREAMS))
        .when("is_thread").then(_SECTIONS.index(THREADS))
        .otherwise(_SECTIONS.index(OTHERS))
    )  # fmt: skip
    tracks = seen.select(*KEY, "base").unique()
    return tracks.join(of, on=["rank", "base"]).select(*KEY, section=section.cast(pl.UInt8))


def _name(rank: int, track: str, ranks: list[int], section: str) -> LaneName:
    group, _, label = plain(track).rpartition(" / ")
    about: tuple[Subject, ...] = (("track", track),)
    if section == PYTHON:
        about = (("python", track), *about)
    return LaneName(rank, several_ranks(group, rank, ranks), label, about)
