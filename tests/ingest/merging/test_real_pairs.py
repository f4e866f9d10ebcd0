"""A run of our own decoder, recorded and profiled at once, against what the engine tells."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.engine.runs.scenario import Options
from stepscope.engine.scenarios.mixed_batches import MixedBatches
from stepscope.ingest.merging.merge import merge
from stepscope.ingest.trace import Trace
from tests.tiers import slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("pair") / "run.trace"
    sizes = {"requests": "4", "layers": "1"}
    MixedBatches().record("before", path, Options(executor="torch", settings=sizes, profile=True))
    return Trace.open(path)


@slow
def test_every_span_is_of_the_step_that_the_engine_was_in(run: Trace) -> None:
    assert run.path is not None
    profile = Trace.open(run.path / "kineto.json.gz")
    own = Trace.from_tables(
        {"steps": run.steps, "batch_rows": run.batch_rows}, run.manifest, name="bare"
    )

    trace, (found,) = merge(own, profile)

    told = pl.concat(
        [run.spans.select(pl.col("step").alias("own"), "span"), trace.spans.select("step")],
        how="horizontal",
    ).collect()
    of_steps = told.filter(pl.col("own").is_not_null())
    assert found.most_ns == 0
    assert found.num_steps == run.num_rows("steps")
    assert len(of_steps) == (of_steps["own"] == of_steps["step"]).sum() > 1_000
