"""A collective of the head names the rows of its step's batch that it is for."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.facets.look import Look
from stepscope.engine.parallel.links.transport import ALL_REDUCE
from stepscope.engine.scenarios import Options
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.replays import SMALL
from tests.tiers import slow


@pytest.fixture(scope="module", params=["after", "v2-device-staging"])
def run(request: pytest.FixtureRequest, recorded_once: RecordedOnce) -> Trace:
    options = Options(settings=SMALL["ep-multiplexing"])
    return recorded_once.trace("ep-multiplexing", request.param, options)


def of_rows(trace: Trace) -> pl.DataFrame:
    """Each collective of the head with the rows that it is for: slot, and slots of the rows."""
    told = trace.collectives.filter(pl.col("rank") == 0).drop_nulls("rows").with_row_index("nth")
    each = told.with_columns(row=pl.col("rows").str.split(",").cast(pl.List(pl.Int32)))
    batch = trace.batch_rows.select("rank", "step", "row", "request", of_row="slot")
    return each.explode("row").join(batch, on=["rank", "step", "row"], how="left").collect()


@slow
def test_a_collective_for_one_row_is_for_the_slot_that_it_has(run: Trace) -> None:
    found = of_rows(run)
    of_slot = found.drop_nulls("slot").filter(~pl.col("rows").str.contains(","))

    assert len(of_slot) > 0
    assert found["request"].null_count() == 0
    assert of_slot.filter(pl.col("slot") != pl.col("of_row")).is_empty()


def test_what_is_computed_in_layers_is_for_each_row_of_the_batch_and_no_other(run: Trace) -> None:
    layers = of_rows(run).filter(pl.col("op") == ALL_REDUCE)
    named = layers.select("step", "row").unique().sort("step", "row").rows()
    batch = run.batch_rows.select("step", "row").sort("step", "row").collect().rows()

    assert named == batch


def test_what_only_moves_slots_and_what_a_worker_enters_is_for_no_row(run: Trace) -> None:
    is_of_none = (pl.col("rank") > 0) | pl.col("command").is_in(["free", "allocate", "shutdown"])

    told = run.collectives.filter(is_of_none).collect()
    assert len(told) > 0
    assert told["rows"].null_count() == len(told)


def test_the_debugger_names_the_requests_that_the_next_collective_is_for(run: Trace) -> None:
    debugger = Debugger(run)
    facet = {each.name: each for each in FACETS}["collectives"]
    found = facet.at(Look.of(debugger))

    assert found is not None
    [head, worker] = found.sort("rank").select("rank", "requests").rows()
    first = run.batch_rows.filter(pl.col("step") == 1, pl.col("row") == 0).collect()["request"][0]
    assert (head, worker) == ((0, first), (1, None))
