"""Blame of recorded runs of a real vLLM agrees with what the engine measured of its requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.ingest.times import MS, SECOND
from tests.recorded import RecordedRun, Row
from tests.tiers import slow

IN_ENGINE = ("no-blocks", "no-seat", "no-budget", "chunk", "head", "step", "preemption", "grammar",
             "parked", "other", "idle", "unknown")  # fmt: skip
Run = Callable[[str], RecordedRun]


def measured(run: RecordedRun) -> dict[str, Row]:
    """What the engine says of each request, by its id without the random suffix."""
    return {each["id"]: each for each in run.metrics["requests"]}


def beside(run: RecordedRun, blamed: Blame) -> Iterator[tuple[Row, Row]]:
    """Each row of blame, and what the engine measured of that request."""
    known = measured(run)
    for row in blamed.requests.iter_rows(named=True):
        yield row, known[row["request"].rsplit("-", 1)[0]]


def test_first_tokens_and_ends_come_within_a_millisecond_of_when_vllm_says(recorded: Run) -> None:
    run = recorded("gen_mix")
    pairs = list(beside(run, blame(run.trace)))

    assert len(pairs) == 40
    for row, told in pairs:
        ttft = (told["first_token_ts"] - told["queued_ts"]) * SECOND
        whole = (told["last_token_ts"] - told["queued_ts"]) * SECOND
        assert row["first_token_ns"] - row["arrive_ns"] == pytest.approx(ttft, abs=MS)
        assert row["latency_ns"] == pytest.approx(whole, abs=MS)


def test_the_time_before_its_batch_is_formed_is_vllm_s_time_in_the_queue(recorded: Run) -> None:
    run = recorded("gen_mix")
    blamed = blame(run.trace)

    for row, told in beside(run, blamed):
        own = blamed.intervals.filter(pl.col("request") == row["request"])
        batches = own.filter(pl.col("cause").is_in(["prefill", "formed"]))
        queued = (told["scheduled_ts"] - told["queued_ts"]) * SECOND
        assert batches["from_ns"].min() - row["arrive_ns"] == pytest.approx(queued, abs=MS)


@slow
def test_sums_over_a_server_are_those_of_its_own_metrics(recorded: Run) -> None:
    run = recorded("serve_prefix")
    text = (run.folder / "serve_prefix.metrics").read_text("utf-8")
    told = {name: float(value) for name, value in re.findall(
        r"^vllm:request_(\w+)_time_seconds_sum{[^}]*} (\S+)$", text, re.MULTILINE)}  # fmt: skip
    blamed = blame(run.trace)
    ended = blamed.requests.filter(pl.col("outcome") == "finish")
    first_batches = blamed.intervals.filter(pl.col("cause").is_in(["prefill", "formed"]))
    began = first_batches.group_by("request").agg(batch_ns=pl.col("from_ns").min())
    sums = ended.join(began, on="request").select(
        queue=(pl.col("batch_ns") - pl.col("arrive_ns")).sum(),
        prefill=(pl.col("first_token_ns") - pl.col("batch_ns")).sum(),
        decode=(pl.col("ended_ns") - pl.col("first_token_ns")).sum(),
    )

    assert len(ended) == 107
    for name, spent in sums.row(0, named=True).items():
        assert spent == pytest.approx(told[name] * SECOND, abs=len(ended) * MS), name
