"""A timeline that is drawn from what was kept of it is the one that is made of the rows."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes import kept_layout
from stepscope.app.timeline.spans.piles import OnDisk
from stepscope.ingest.storage.cache import Cache, users_cache
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.tiers import sampled, slow
from tests.traces import trace_of

TRACES = (
    "fcfs-preemption-before.trace", "mix-admission-before.trace", "torch_profiler_cpu.json.gz",
)  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of the test's own, into which even the smallest trace is worth to be put."""
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_layout, "WORTH_ROWS", 0)
    found = users_cache()
    assert found is not None
    return found


def kept(cache: Cache) -> list[Path]:
    return [entry.folder for entry in cache.entries() if entry.folder.suffix == ".index"]


def made_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, whoever lays out a trace fails."""

    def fail(*_: object) -> NoReturn:
        raise AssertionError("made again")

    monkeypatch.setattr(kept_layout, "lay_out", fail)


def shown(timeline: Timeline) -> list[Any]:
    """Lanes, and pictures of windows of different widths, with the spans that they list."""
    first, last = timeline.bounds
    lanes = range(len(timeline.lanes))
    found: list[Any] = [timeline.bounds, timeline.lanes, timeline.top_names, timeline.share_of]
    found += [timeline.called(kind) for kind in sorted(timeline.kinds)]
    for part in (1, 3, 50, 3_000):
        t0 = first + (last - first) // 3 * (part > 1)
        seen = timeline.query(t0, t0 + max(1, (last - first) // part), 200, lanes)
        found += [seen.state.tolist(), seen.density.tolist(), seen.count.tolist(), seen.spans]
    return found


def blocks(*ends: int) -> Trace:
    rows = [{"ts_ns": end - 5, "end_ns": end, "core": 0, "core_kind": "AIC", "shape": "AIC",
             "group": 0, "task": at, "block": 0} for at, end in enumerate(ends)]  # fmt: skip
    return trace_of(core_spans=rows)


@slow
@pytest.mark.parametrize("name", sampled(TRACES, [TRACES[1]]))
def test_a_timeline_drawn_again_is_the_one_that_was_made(
    sample_traces: Path, name: str, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_rows = shown(Timeline.of(Trace.open(sample_traces / name, cached=False)))
    assert kept(cache) == []

    made = shown(Timeline.of(Trace.open(sample_traces / name)))
    assert len(kept(cache)) == 1
    made_no_more(monkeypatch)
    again = shown(Timeline.of(Trace.open(sample_traces / name)))

    assert made == of_rows
    assert again == of_rows


def test_a_trace_that_changed_is_laid_out_anew(tmp_path: Path, cache: Cache) -> None:
    save_trace(blocks(10, 20), tmp_path / "run.trace")
    before = shown(Timeline.of(Trace.open(tmp_path / "run.trace")))

    save_trace(blocks(10, 30), tmp_path / "run.trace")
    after = shown(Timeline.of(Trace.open(tmp_path / "run.trace")))

    assert after == shown(Timeline.of(blocks(10, 30))) != before
    assert len(kept(cache)) == 2


@slow
@pytest.mark.parametrize("how", ["cut", "flipped", "gone", "emptied"])
def test_a_damaged_index_is_made_again(sample_traces: Path, cache: Cache, how: str) -> None:
    path = sample_traces / TRACES[1]
    right = shown(Timeline.of(Trace.open(path)))
    (entry,) = kept(cache)
    for file in entry.glob("*.bin"):
        content = file.read_bytes()
        if how == "gone":
            file.unlink()
        elif how == "cut" and content:
            file.write_bytes(content[:-1])
        elif how == "flipped" and content:
            file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        elif how == "emptied":
            file.write_bytes(b"")

    again = shown(Timeline.of(Trace.open(path)))

    assert again == right
    assert len(kept(cache)) == 1


@slow
def test_a_build_that_was_killed_leaves_nothing_that_is_taken_for_an_index(
    sample_traces: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> NoReturn:
        raise Killed

    path = sample_traces / TRACES[1]
    with monkeypatch.context() as patch:
        patch.setattr("json.dumps", killed)
        patch.setattr(shutil, "rmtree", lambda *_args, **_named: None)
        with pytest.raises(Killed):
            Timeline.of(Trace.open(path))
    assert kept(cache) == []

    assert shown(Timeline.of(Trace.open(path))) == shown(
        Timeline.of(Trace.open(path, cached=False))
    )
    assert len(kept(cache)) == 1


def test_a_full_disk_costs_the_index_and_nothing_else(
    sample_traces: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = sample_traces / TRACES[1]
    right = shown(Timeline.of(Trace.open(path, cached=False)))
    monkeypatch.setattr(OnDisk, "add", full)

    assert shown(Timeline.of(Trace.open(path))) == right
    assert kept(cache) == []


def test_two_that_open_a_trace_at_once_share_what_the_first_has_kept(
    sample_traces: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = sample_traces / TRACES[1], kept_layout.write_layout
    both: list[Timeline] = []

    def write_after_another(folder: Path, trace: Trace) -> None:
        if not both:
            both.append(None)  # type: ignore[arg-type]  # the other is under way
            both[0] = Timeline.of(Trace.open(path))
        write(folder, trace)

    monkeypatch.setattr(kept_layout, "write_layout", write_after_another)
    both.append(Timeline.of(Trace.open(path)))

    assert shown(both[0]) == shown(both[1])
    assert len(kept(cache)) == 1


def test_rows_that_were_replaced_are_not_drawn_from_those_before(
    sample_traces: Path, cache: Cache
) -> None:
    trace = Trace.open(sample_traces / TRACES[1])
    Timeline.of(trace)
    fewer = trace.replacing({"core_spans": trace.core_spans.head(1)}, trace.manifest)

    timeline = Timeline.of(fewer)

    assert shown(timeline) != shown(Timeline.of(trace))
    assert len(kept(cache)) == 1
