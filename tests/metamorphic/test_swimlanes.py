"""Swimlanes rewritten: what must stay as it was, and what must be said."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest

from stepscope.ingest.trace import Trace
from tests.metamorphic.contents import (
    Told,
    blamed,
    contents_of,
    counts_of,
    findings_of,
    report_of,
    rows_of,
    told_of,
)
from tests.metamorphic.swimlanes import PHASES, Swimlane, each_cycle, each_task, names, swimlane
from tests.tiers import sampled, slow

SAMPLES = (
    "mix-admission-before.trace", "mix-admission-after.trace", "fcfs-preemption-before.trace",
)  # fmt: skip
LATER_CYCLES, LATER_NS = 500_000, 10_000_000
RENAMED = 1 << 16
each_swimlane = pytest.mark.parametrize("name", sampled(names(), ["made"]))


@cache
def told(folder: Path, name: str) -> Told:
    """What is read and said of a swimlane as it is."""
    return told_of(Trace.open(swimlane(name).write(folder / name)))


def shuffled(found: Swimlane) -> Swimlane:
    random = Random(7)  # the same order each time
    lists = [found.records["aicore_tasks"], found.records["aicpu_tasks"], found.deps["edges"]]
    for each in [*lists, *(thread for phases in PHASES for thread in found.records[phases])]:
        random.shuffle(each)
    return found


def keys_reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: keys_reversed(value[key]) for key in reversed(value)}
    return [keys_reversed(each) for each in value] if isinstance(value, list) else value


WRITTEN: dict[str, Callable[[Any], bytes]] = {
    "pretty": lambda value: json.dumps(value, indent=2).encode(),
    "compact": lambda value: json.dumps(value, separators=(",", ":")).encode(),
    "marked as UTF-8": lambda value: b"\xef\xbb\xbf" + json.dumps(value).encode(),
    "gzipped": lambda value: gzip.compress(json.dumps(value).encode()),
    "keys reversed": lambda value: json.dumps(keys_reversed(value)).encode(),
    "unknown fields": lambda value: json.dumps({**value, "more": [{"task_id": 1}]}).encode(),
}


@slow
@each_swimlane
def test_a_swimlane_written_otherwise_is_the_same(folder: Path, tmp_path: Path, name: str) -> None:
    for how, written in WRITTEN.items():
        trace = Trace.open(swimlane(name).write(tmp_path / how / "Case1", written))

        assert told_of(trace) == told(folder, name), how


@each_swimlane
def test_the_order_of_records_makes_no_difference(folder: Path, tmp_path: Path, name: str) -> None:
    trace = Trace.open(shuffled(swimlane(name)).write(tmp_path / "Case1"))

    assert told_of(trace) == told(folder, name)


@each_swimlane
def test_a_swimlane_that_was_rewritten_leaves_the_next_as_it_was(name: str) -> None:
    first = deepcopy(swimlane(name))

    each_task(each_cycle(swimlane(name), lambda cycles: cycles + 1), lambda task: task + 1)

    assert swimlane(name) == first


@each_swimlane
def test_later_by_a_constant_is_later_by_it_everywhere(
    folder: Path, tmp_path: Path, name: str
) -> None:
    late = each_cycle(swimlane(name), lambda cycles: cycles + LATER_CYCLES)

    trace = Trace.open(late.write(tmp_path / "Case1"))

    first = told(folder, name)
    assert contents_of(moved(trace, -LATER_NS)) == first.tables
    assert counts_of(trace) == first.counts
    assert findings_of(trace)["counts"] == first.findings["counts"]


@each_swimlane
def test_a_clock_half_as_fast_makes_all_twice_as_long(tmp_path: Path, name: str) -> None:
    slow = swimlane(name)
    slow.records["metadata"] = {
        **slow.records["metadata"],
        "clock_freq_hz": slow.records["metadata"]["clock_freq_hz"] // 2,
    }

    trace = Trace.open(slow.write(tmp_path / "Case1"))

    once = Trace.open(swimlane(name).write(tmp_path / "Case2"))
    for table, columns in {
        "core_spans": ("ts_ns", "dispatch_ns", "end_ns", "ready_ns"),
        "tasks": ("ts_ns", "ready_ns", "retired_ns"),
        "spans": ("ts_ns", "dur_ns"),
    }.items():
        twice = once.table(table).select(pl.col(columns) * 2).collect()
        assert Counter(trace.table(table).select(columns).collect().rows()) == Counter(twice.rows())


@each_swimlane
def test_tasks_of_another_number_are_the_same_tasks(
    folder: Path, tmp_path: Path, name: str
) -> None:
    trace = Trace.open(
        each_task(swimlane(name), lambda task: task + RENAMED).write(tmp_path / "Case1")
    )

    first = told(folder, name)
    numbers = cs.by_name("task", "from_task", "to_task", require_all=False) - RENAMED
    assert (
        contents_of(with_columns(trace, numbers), "args")["core_spans"]
        == first.tables["core_spans"]
    )
    assert rows_of(with_columns(trace, numbers), "tasks") == first.tables["tasks"]
    assert counts_of(trace) == first.counts
    assert findings_of(trace)["counts"] == first.findings["counts"]


@each_swimlane
def test_kernels_of_another_name_are_the_same_blocks(
    folder: Path, tmp_path: Path, name: str
) -> None:
    found = swimlane(name)
    found.names = {number: f"kernel [{number}] é" for number in found.names}

    trace = Trace.open(found.write(tmp_path / "Case1"))

    first = told(folder, name)
    assert rows_of(trace, "core_spans") == first.tables["core_spans"]
    assert counts_of(trace) == first.counts
    assert findings_of(trace)["counts"] == first.findings["counts"]
    assert all("kernel" in each for each in trace.tasks.collect()["name"].drop_nulls())


@each_swimlane
@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_a_block_that_is_lost_is_one_block_less_and_said(
    folder: Path, tmp_path: Path, name: str, which: str
) -> None:
    found = swimlane(name)
    blocks = found.records["aicore_tasks"]
    gone = blocks.pop({"first": 0, "middle": len(blocks) // 2, "last": -1}[which])

    trace = Trace.open(found.write(tmp_path / "Case1"))

    first = told(folder, name)
    lost = first.tables["core_spans"].total() - trace.num_rows("core_spans")
    assert lost == 1, gone
    assert counts_of(trace)[1:] != first.counts[1:] or report_of(trace).notes


@slow
@each_swimlane
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_of_records_that_were_cut_off_what_is_whole_is_kept_and_the_rest_said(
    tmp_path: Path, name: str, share: float
) -> None:
    out = swimlane(name).write(tmp_path / "Case1")
    content = (out / "chip_swimlane_records.json").read_bytes()
    (out / "chip_swimlane_records.json").write_bytes(content[: int(len(content) * share)])

    trace = Trace.open(out)

    assert trace.manifest.closed is False
    assert any("cut off" in note for note in report_of(trace).notes)
    assert findings_of(trace)["counts"]["TRC001"] == 1


# -- the project's own recordings -----------------------------------------------------------------


def moved(trace: Trace, by_ns: int) -> Trace:
    """All times of a trace, whatever they are called."""
    lengths = cs.by_name("dur_ns", "cpu_dur_ns", "gpu_dur_ns", require_all=False)
    return with_columns(trace, (cs.ends_with("_ns") - lengths) + by_ns)


def with_columns(trace: Trace, changed: pl.Expr) -> Trace:
    frames = {name: trace.table(name).with_columns(changed) for name in trace.manifest.tables}
    return Trace(frames, trace.manifest, trace.name)


@slow
@pytest.mark.parametrize("sample", sampled(SAMPLES, SAMPLES[:1]))
def test_findings_of_a_recording_do_not_depend_on_the_order_of_its_rows(
    sample_traces: Path, sample: str
) -> None:
    trace = Trace.open(sample_traces / sample)
    frames = {
        name: trace.table(name).collect().sample(fraction=1.0, shuffle=True, seed=7).lazy()
        for name in trace.manifest.tables
    }

    again = Trace(frames, trace.manifest, "")

    assert findings_of(again) == findings_of(trace)
    assert blamed(again) == blamed(trace)


@slow
@pytest.mark.parametrize("sample", sampled(SAMPLES, SAMPLES[:1]))
def test_findings_of_a_recording_do_not_depend_on_when_it_began_or_what_tasks_are_called(
    sample_traces: Path, sample: str
) -> None:
    trace = Trace.open(sample_traces / sample)
    renamed = cs.by_name("task", "from_task", "to_task", require_all=False) + RENAMED

    late = moved(trace, LATER_NS)
    other = with_columns(trace, renamed)

    assert findings_of(late)["counts"] == findings_of(trace)["counts"]
    assert blamed(late, later_ns=-LATER_NS) == blamed(trace)
    assert findings_of(other)["counts"] == findings_of(trace)["counts"]
