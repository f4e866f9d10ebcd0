"""Profiles of several ranks that SGLang merged into one file: shown, and not taken for one rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.display import facts
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.ingest.kineto_files import open_events, rows, slice_
from tests.ingest.log_files import report_of

STEP = "step[DECODE bs=32]"
NOTE = (
    "profiles of 2 ranks are merged into this file: steps and collectives are not told apart, open "
    "the folder of the ranks' own files for them"
)


def merged(*ranks: str) -> list[dict[str, Any]]:
    return [
        slice_(
            STEP, 1_000 + at, 100 + at, cat="user_annotation", pid=f"[{rank}] 8{at}", tid=80 + at
        )
        for at, rank in enumerate(ranks)
    ]


def test_ranks_that_were_merged_are_shown_and_are_no_steps_of_one(tmp_path: Path) -> None:
    trace = open_events(tmp_path, *merged("TP00-DP00-PP00-EP00", "TP01-DP00-PP00-EP00"))

    assert rows(trace, "spans", "track") == [
        "[TP00-DP00-PP00-EP00] 80 / thread 80",
        "[TP01-DP00-PP00-EP00] 81 / thread 81",
    ]
    assert not trace.has("steps")
    assert NOTE in report_of(trace).notes


@pytest.mark.parametrize("rank", ["TP00", "TP03-DP00", "TP00-DP00-PP00-EP00"])
def test_processes_of_one_rank_are_that_rank_s(tmp_path: Path, rank: str) -> None:
    trace = open_events(tmp_path, *merged(rank, rank))

    assert trace.num_rows("steps") == 2
    assert NOTE not in report_of(trace).notes


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


def test_what_is_said_of_a_merged_file_is_said_of_several_ranks(tmp_path: Path) -> None:
    trace = open_events(tmp_path, *merged("TP00-DP00", "TP01-DP00"))

    assert ("ranks", "2, not told apart (TP00-DP00, TP01-DP00)") in facts(
        trace.manifest, trace.steps
    )
    assert blame(trace).notes == (
        "profiles of several ranks are merged into one file, in which their steps are not told "
        "apart: there is no time to be blamed for",
    )


def test_a_merged_file_as_sglang_names_its_processes() -> None:
    file = ROOT.parent / "shared" / "foreign" / "merged_tp.json"
    if not file.is_file():
        pytest.skip("the folder of what people also have, ../shared/foreign, is absent")

    trace = Trace.open(file)

    assert (trace.num_rows("spans"), trace.has("steps")) == (2, False)
    assert NOTE in report_of(trace).notes
