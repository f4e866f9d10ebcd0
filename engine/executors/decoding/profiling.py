"""A run under torch.profiler: its file is kept in the trace, and its spans become the trace's own.

The profiler tells Unix time, the trace the time since its clock's zero; the first tag of the file
is the first step that was tagged, and so on, which ties every span to the engine's own step.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import torch
from torch.profiler import ProfilerActivity, profile

from stepscope.engine.clock import WallClock
from stepscope.ingest.readers.chrome.reader import ChromeReader

if TYPE_CHECKING:
    from stepscope.engine.executors.decoding.model_runner import ModelRunner
    from stepscope.ingest.recorder import Recorder

KINETO_FILE = "kineto.json.gz"
_SPAN_COLUMNS = (
    "step", "ts_ns", "span", "track", "name", "category", "form", "dur_ns", "parent",
    "correlation", "args",
)  # fmt: skip


@contextmanager
def profiled(recorder: Recorder | None, runner: ModelRunner, clock: WallClock) -> Iterator[None]:
    """Profile what is run on `runner`; the file and the spans go to the trace of `recorder`."""
    with _profile() as profiler:
        yield
    if recorder:
        file = recorder.path / KINETO_FILE
        _export(profiler, file)
        for row in spans_of(file, runner.tagged_steps, clock.epoch_ns).iter_rows():
            recorder.spans(*row)


def warm_up() -> None:
    """Let the profiler begin once, which takes a second that is none of the run's."""
    with _profile():
        torch.ones(1).sum()


def spans_of(file: Path, steps: Sequence[int], epoch_ns: int) -> pl.DataFrame:
    """Return the spans of a profile with times since `epoch_ns`, as `Recorder.spans` takes them.

    `steps` are the numbers of the steps in it, in order.
    """
    tables, manifest = ChromeReader().read(file, None)
    found = pl.Series(steps, dtype=pl.Int64)
    spans = tables["spans"].lazy().collect()
    return spans.with_columns(
        pl.lit(found).gather(pl.col("step") - 1),
        pl.col("ts_ns") + manifest.clock.epoch_ns - epoch_ns,
    ).select(_SPAN_COLUMNS)


def _profile() -> profile:
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return profile(activities=activities, acc_events=True)


def _export(profiler: profile, file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "kineto.json"
        profiler.export_chrome_trace(str(draft))
        text = re.sub(r'"traceName": ".*?"', f'"traceName": "{file.name}"', draft.read_text())
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
