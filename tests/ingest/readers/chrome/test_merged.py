"""Profiles of several ranks that SGLang merged into one file: what the folder of them would be."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.ingest.display import sources
from stepscope.ingest.readers.chrome import merged as merging
from stepscope.ingest.readers.chrome.merged import numbered
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.derive.collectives.rank_jobs import Look, clocks, job, write_job
from tests.ingest.kineto_files import num_accounted, open_events, rows, slice_
from tests.ingest.log_files import report_of
from tests.ingest.real_files import GLOO
from tests.looped import looped
from tests.tiers import slow

STEP = "step[DECODE bs=32]"


def merged(*ranks: str) -> list[dict[str, Any]]:
    return [
        slice_(
            STEP, 1_000 + at, 100 + at, cat="user_annotation", pid=f"[{rank}] 8{at}", tid=80 + at
        )
        for at, rank in enumerate(ranks)
    ]


def merge(folder: Path, *labels: str) -> dict[str, Any]:
    """Merge the files of a folder as SGLang does: only processes get another id."""
    together: dict[str, Any] = {"traceEvents": []}
    for label, file in zip(labels, sorted(folder.iterdir()), strict=True):
        said = json.loads(file.read_text())
        for event in said.pop("traceEvents"):
            together["traceEvents"].append(event | {"pid": f"[{label}] {event['pid']}"})
        together = said | together
    return together


@slow
def test_a_step_of_each_rank_is_that_rank_s(tmp_path: Path) -> None:
    trace = open_events(tmp_path, *merged("TP00-DP00-PP00-EP00", "TP01-DP00-PP00-EP00"))

    assert rows(trace, "steps", "rank", "kind", "num_decode_reqs", "ts_ns", "dur_ns") == [
        (0, "decode", 32, 1_000_000, 100_000), (1, "decode", 32, 1_001_000, 101_000),
    ]  # fmt: skip
    assert rows(trace, "spans", "rank", "track") == [
        (0, "process 80 / thread 80"), (1, "process 81 / thread 81"),
    ]  # fmt: skip
    assert sources(trace.manifest) == {"0": "TP00-DP00-PP00-EP00", "1": "TP01-DP00-PP00-EP00"}


@slow
@pytest.mark.parametrize("late_us", [0, 700])
@pytest.mark.parametrize("has_seq", [True, False])
def test_a_merged_file_is_what_the_folder_of_its_ranks_is(
    tmp_path: Path, late_us: float, has_seq: bool
) -> None:
    plan = job(3, num_steps=4, per_step=4)
    looks = [Look(has_seq=has_seq, late_us=late_us * rank) for rank in range(3)]
    folder = write_job(tmp_path / "job", plan, *looks)
    expected = Trace.open(folder, cached=False)
    together = merge(folder, *(f"TP{rank:02}-DP00-PP00-EP00" for rank in range(3)))

    trace = open_events(tmp_path, *together.pop("traceEvents"), **together)

    assert expected.has("collectives")
    for table in TABLES:
        found, wanted = (
            each.table(table.name).sort("rank", maintain_order=True).collect()
            for each in (trace, expected)
        )
        assert found.equals(wanted), table.name
    assert clocks(trace) == clocks(expected)
    assert trace.manifest.config["paired"] == expected.manifest.config["paired"]
    assert report_of(trace).read == report_of(expected).read


def test_flows_and_launches_of_two_ranks_that_are_numbered_alike_stay_apart(tmp_path: Path) -> None:
    events = [
        each
        for rank in ("TP00", "TP01")
        for each in (
            slice_("launch", 10, 5, pid=f"[{rank}] 1", args={"correlation": 7}),
            slice_("kernel", 20, 5, pid=f"[{rank}] 0", tid=7, cat="kernel",
                   args={"correlation": 7}),
            {"ph": "s", "id": 7, "cat": "ac2g", "name": "ac2g", "pid": f"[{rank}] 1", "tid": 1,
             "ts": 10},
            {"ph": "f", "id": 7, "cat": "ac2g", "name": "ac2g", "pid": f"[{rank}] 0", "tid": 7,
             "ts": 20, "bp": "e"},
        )
    ]  # fmt: skip

    trace = open_events(tmp_path, *events)

    assert sorted(rows(trace, "flows", "rank", "flow", "end")) == [
        (0, "7", "finish"), (0, "7", "start"), (1, "7", "finish"), (1, "7", "start"),
    ]  # fmt: skip
    assert sorted(rows(trace, "spans", "rank", "name", "correlation")) == [
        (rank, name, 7) for rank in (0, 1) for name in ("kernel", "launch")
    ]
    args = trace.spans.select("rank", "args").collect().unique()
    assert args.height == 2


def test_args_stay_with_the_spans_of_their_rank_though_ranks_alternate(tmp_path: Path) -> None:
    events = [
        slice_(f"span {at}", at, 1, pid=f"[TP{at % 3:02}] 1", args={"at": at}) for at in range(300)
    ]

    trace = open_events(tmp_path, *events)

    told = trace.spans.select("rank", "name", "args").collect()
    assert told.height == 300
    for rank, name, args in told.iter_rows():
        at = json.loads(args)["at"]
        assert (rank, name) == (at % 3, f"span {at}")


def test_every_event_of_a_merged_file_is_accounted_for(tmp_path: Path) -> None:
    odd: list[Any] = [
        {"ph": "E", "pid": "[TP01] 1", "tid": 1, "ts": 1},
        {"ph": "?", "pid": "[TP00] 1"},
        7,
    ]
    stray = slice_("no rank", 1, 1, pid=9)

    trace = open_events(tmp_path, *merged("TP00", "TP01"), *odd, stray)

    assert num_accounted(trace) == 6
    assert report_of(trace).repaired == {
        "events of a process that names no rank, taken for the first rank's": 1
    }
    assert (0, "no rank") in rows(trace, "spans", "rank", "name")


@slow
@pytest.mark.parametrize("rank", ["TP00", "TP03-DP00", "TP00-DP00-PP00-EP00"])
def test_processes_of_one_rank_are_that_rank_s(tmp_path: Path, rank: str) -> None:
    trace = open_events(tmp_path, *merged(rank, rank))

    assert trace.num_rows("steps") == 2
    assert trace.manifest.ranks == (0,)


NUMBERED = {
    "tensor parallel": (["TP01", "TP00", "TP02"], {"TP00": 0, "TP01": 1, "TP02": 2}),
    "one is missing": (["TP03", "TP01"], {"TP01": 1, "TP03": 3}),
    "a pipeline": (
        ["TP00-PP01", "TP01-PP00", "TP00-PP00", "TP01-PP01"],
        {"TP00-PP00": 0, "TP01-PP00": 1, "TP00-PP01": 2, "TP01-PP01": 3},
    ),
    "attention is data parallel": (
        ["TP01-DP01-PP00-EP01", "TP00-DP00-PP00-EP00"],
        {"TP00-DP00-PP00-EP00": 0, "TP01-DP01-PP00-EP01": 1},
    ),
    "replicas": (["TP00-DP01", "TP00-DP00"], {"TP00-DP00": 0, "TP00-DP01": 1}),
    "nothing": ([], {}),
}


@looped("how", NUMBERED)
def test_ranks_are_numbered_as_torch_numbers_them(how: str) -> None:
    labels, expected = NUMBERED[how]

    assert list(numbered(labels).items()) == list(expected.items())


def test_more_ranks_than_are_told_apart_are_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MOST_RANKS", 2)

    trace = open_events(tmp_path, *merged("TP00", "TP01", "TP02"))

    assert trace.steps.select(pl.col("rank").sort()).collect().to_series().to_list() == [0, 0, 1]
    assert sum(report_of(trace).repaired.values()) == 1


def test_beside_the_files_that_it_was_merged_of_a_merged_one_is_left_out(tmp_path: Path) -> None:
    for rank in (0, 1):
        info = {"distributedInfo": {"rank": rank, "world_size": 2}}
        events = [slice_(STEP, 1_000 + rank, 100)]
        (tmp_path / f"p-TP-{rank}.trace.json").write_text(
            json.dumps({**info, "traceEvents": events})
        )
    together = {"traceEvents": merged("TP00-DP00", "TP01-DP00")}
    (tmp_path / "merged-p.trace.json").write_text(json.dumps(together))

    trace = Trace.open(tmp_path)

    assert rows(trace, "steps", "rank") == [0, 1]
    assert report_of(trace).skipped == {"files into which several ranks are merged": 1}


def test_a_folder_of_one_merged_file_is_that_file(tmp_path: Path) -> None:
    together = {"traceEvents": merged("TP00-DP00", "TP01-DP00")}
    (tmp_path / "merged-p.trace.json").write_text(json.dumps(together))

    assert rows(Trace.open(tmp_path), "steps", "rank") == [0, 1]


@slow
def test_two_ranks_over_gloo_that_are_merged_are_what_their_folder_is(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in (0, 1):
        content = gzip.decompress((GLOO / f"rank{rank}.json.gz").read_bytes())
        (folder / f"{rank}.json").write_bytes(content)
    expected = Trace.open(folder, cached=False)
    together = merge(folder, "TP00-DP00-PP00-EP00", "TP01-DP00-PP00-EP00")

    trace = open_events(tmp_path, *together.pop("traceEvents"), **together)

    columns = ("rank", "step", "kind", "dur_ns"), ("rank", "op", "ordinal", "num_elements")
    for table, compared in zip(("steps", "collectives"), columns, strict=True):
        assert sorted(rows(trace, table, *compared)) == sorted(rows(expected, table, *compared))
    assert trace.num_rows("spans") == expected.num_rows("spans")
    assert clocks(trace) == clocks(expected)
    assert trace.manifest.config["paired"] == expected.manifest.config["paired"]


def test_a_merged_file_as_sglang_names_its_processes() -> None:
    file = ROOT.parent / "shared" / "foreign" / "merged_tp.json"
    if not file.is_file():
        pytest.skip("the folder of what people also have, ../shared/foreign, is absent")
    events = json.loads(file.read_text())["traceEvents"]

    trace = Trace.open(file)

    assert rows(trace, "steps", "rank", "ts_ns", "dur_ns") == [
        (rank, event["ts"] * 1000, event["dur"] * 1000) for rank, event in enumerate(events)
    ]
    assert sum(report_of(trace).read.values()) == len(events)
