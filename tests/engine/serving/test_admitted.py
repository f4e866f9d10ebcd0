"""Whoever a policy lets in has a decision that says so, as who is left out has."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.trace import Trace
from tests.replays import SMALL
from tests.tiers import slow

TOLD = {
    "fcfs-preemption": ("kv-block", "engine/schedulers/bucketed.py"),
    "slot-recycling": ("slot", "engine/schedulers/slotted.py"),
    "ep-multiplexing": ("slot", "engine/schedulers/multiplexed.py"),
    "waiting-queue": ("kv-block", "engine/schedulers/queued.py"),
}
VARIANTS = {"waiting-queue": "after"}


@pytest.fixture(scope="module", params=sorted(TOLD))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    out = tmp_path_factory.mktemp("runs") / f"{request.param}.trace"
    settings = SMALL.get(request.param, {})
    scenario(request.param).record(
        VARIANTS.get(request.param, "before"), out, Options(settings=settings)
    )
    return Trace.open(out)


def admitted(trace: Trace) -> pl.DataFrame:
    is_let_in = (pl.col("verdict") == "admitted") & (pl.col("subject_kind") == "request")
    return trace.decisions.filter(is_let_in).sort("seq").collect()


@slow
def test_each_that_is_let_in_was_admitted_once_just_before(run: Trace) -> None:
    is_let_in = pl.col("event").is_in(["admit", "resume"])
    came = run.lifecycle.filter(is_let_in).sort("seq").select("request", "step", "seq").collect()
    told = admitted(run)

    assert len(came) > 0
    assert told.select("subject", "step").rows() == came.select("request", "step").rows()
    assert (told["seq"] < came["seq"]).all()


def test_what_it_takes_was_there_and_the_policy_says_where_it_decided(run: Trace) -> None:
    resource, file = TOLD[run.name.removesuffix(".trace")]
    told = admitted(run)

    assert set(told["resource"]) == {resource}
    assert (told["needed"] <= told["available"]).all()
    assert {site.partition(":")[0] for site in told["site"]} == {file}


def test_who_goes_ahead_of_others_says_of_how_many(run: Trace) -> None:
    """In the queue as the rows until then tell it."""
    queue: list[str] = []
    events = run.lifecycle.select("seq", "request", "event", "queue_index").collect()
    places: dict[int, tuple[str, int]] = {}
    rows = pl.concat([events, admitted(run).select("seq", request="subject")], how="diagonal").sort(
        "seq"
    )
    for seq, request, event, index in rows.iter_rows():
        if event is None:
            places[seq] = (request, queue.index(request))
        elif request in queue:
            queue.remove(request)
        if event is not None and index is not None:
            queue.insert(index, request)

    for seq, request, reason in admitted(run).select("seq", "subject", "reason").iter_rows():
        name, place = places[seq]
        first = "the first in the queue"
        ahead = f"ahead of {place} that stand before it"
        assert (name, reason) == (request, ahead if place else first)
