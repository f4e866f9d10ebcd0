"""What real engines tell beside our own has a place in the tables, and old traces lack it only."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.schema import NOT_READY, WHAT_BLOCKS
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.looped import looped

RECORDED = sorted((ROOT / "sample_traces").glob("fcfs-preemption-*.trace"))


def test_what_a_real_engine_records_is_read_back(tmp_path: Path) -> None:
    with Recorder(tmp_path / "a.trace", producer="real") as recorder:
        recorder.steps(
            step=0, ts_ns=20, kind="decode", formed_ns=10, kv_blocks_cached=3, pp_stage=1,
            reserve_ratio=0.75,
        )  # fmt: skip
        recorder.lifecycle(ts_ns=1, request="a", event="receive", external_id="chat-1")
        recorder.allocations(
            ts_ns=10, resource="kv-block", id=4, op="copy", owner="a", group=1, block_hash="beef",
            source=3,
        )  # fmt: skip
        recorder.queue_order(step=0, ts_ns=10, index=0, request="a", queue="waiting")

    trace = Trace.open(tmp_path / "a.trace")

    step = trace.steps.select("formed_ns", "kv_blocks_cached", "pp_stage", "reserve_ratio")
    assert step.collect().rows() == [(10, 3, 1, 0.75)]
    assert trace.lifecycle.select("event", "external_id").collect().rows() == [
        ("receive", "chat-1")
    ]
    block = trace.allocations.select("op", "group", "block_hash", "source")
    assert block.collect().rows() == [("copy", 1, "beef", 3)]
    assert trace.queue_order.select("step", "index", "request", "queue").collect().rows() == [
        (0, 0, "a", "waiting")
    ]


@looped("path", RECORDED)
def test_what_an_older_version_did_not_record_is_not_known(path: Path) -> None:
    trace = Trace.open(path)

    told = trace.steps.select(pl.col("formed_ns", "kv_blocks_cached", "pp_stage").count())
    assert told.collect().row(0) == (0, 0, 0)
    assert trace.lifecycle.select(pl.col("external_id").count()).collect().item() == 0
    assert trace.queue_order.collect().is_empty()


@looped("path", RECORDED)
def test_whatever_blocks_a_request_has_a_word(path: Path) -> None:
    told = Trace.open(path).decisions.select(pl.col("resource").drop_nulls().unique())

    assert set(told.collect()["resource"]) <= set(WHAT_BLOCKS)


def test_who_is_not_ready_is_blocked_by_something_that_has_a_word() -> None:
    assert set(NOT_READY) < set(WHAT_BLOCKS)
