"""What is read back of batches that were told by what changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.compaction import compact_segment
from stepscope.ingest.recording.lasting import MOST_CHANGES
from stepscope.ingest.trace import Trace
from tests.ingest.recording.batch_truth import Truth, prefill
from tests.tiers import slow


@slow
@given(seed=st.integers(0, 1 << 30), num_steps=st.integers(1, 3 * MOST_CHANGES))
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_whatever_a_scheduler_does_readers_see_its_batches_row_by_row(
    tmp_path_factory: pytest.TempPathFactory, seed: int, num_steps: int
) -> None:
    folder = tmp_path_factory.mktemp("random")
    with Recorder(folder / "run.trace", producer="test") as rec:
        truth = Truth(rec, seed).run(range(num_steps))
        shutil.copytree(rec.path, folder / "killed.trace")

    truth.assert_is(folder / "killed.trace")
    truth.assert_is(folder / "run.trace")


@slow
@pytest.mark.usefixtures("small_segments", "no_compactor")
def test_each_segment_can_be_compacted_by_itself_while_the_run_goes_on(rec: Recorder) -> None:
    truth = Truth(rec, 1).run(range(1_200))
    full = sorted(rec.path.glob("journal.rank=0/[bo]*.seg"))
    assert len(full) > 6

    for file in full:
        compact_segment(file)
    truth.assert_is(rec.path)
    truth.run(range(1_200, 1_300))
    rec.close()

    truth.assert_is(rec.path)
    assert not list(rec.path.glob("journal*"))


@slow
def test_a_long_run_of_batches_takes_a_few_bytes_a_step(rec: Recorder) -> None:
    batches = rec.batches()
    formed = batches.whole(0, 0, [prefill(f"cmpl-{at:032x}-0", 10 + at) for at in range(64)])
    batches.outputs(formed, 1)
    for step in range(1, 2_000):
        batches.outputs(batches.again(step, 10_000_000 * step), 10_000_000 * step + 9_000_000)

    rec.close()

    size = sum(file.stat().st_size for file in rec.path.rglob("*.parquet"))
    assert Trace.open(rec.path).num_rows("outputs") == 64 * 2_000
    assert size < 50 * 2_000


@pytest.mark.parametrize("name", ["batch_rows", "outputs"])
def test_batches_whose_beginning_is_lost_are_told_as_lost(
    rec: Recorder, tmp_path: Path, name: str
) -> None:
    Truth(rec, 3).run(range(50))
    rec.steps(step=1, ts_ns=0, kind="decode")
    trace = Path(shutil.copytree(rec.path, tmp_path / "killed.trace"))
    (trace / "journal.rank=0" / "strings-000000.seg").unlink()

    opened = Trace.open(trace)

    assert opened.num_rows(name) == 0
    assert opened.num_rows("steps") == 1
    assert f"{name}-000000.seg: a batch is lost" in repr(opened)


def test_sql_and_filters_see_the_rows_too(rec: Recorder) -> None:
    batches = rec.batches()
    batches.whole(0, 0, map(prefill, "ab"))
    batches.again(5, 10)
    rec.close()
    trace = Trace.open(rec.path)

    found = trace.sql("select request, num_computed from batch_rows where step = 5 order by row")
    late = trace.batch_rows.filter(pl.col("num_computed") > 7).select("step").collect()

    assert found.rows() == [("a", 8), ("b", 8)]
    assert late["step"].to_list() == [5, 5]
