"""Two faults of the dispatcher: what is left over, and what starts together."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.engine.faults import fault
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.tiers import slow


def recorded(out: Path, name: str | None = None, **settings: str) -> Trace:
    """`mix-admission` after the repair, with a fault when one is named."""
    given = {**settings, "fault": name} if name else settings
    scenario("mix-admission").record("after", out, asked(given))
    return Trace.open(out)


def longest_wait_ns(trace: Trace) -> int:
    """The longest time from ready to dispatch of a MIX block."""
    wait = pl.col("dispatch_ns") - pl.col("ready_ns")
    return int(
        trace.core_spans.filter(pl.col("shape") == "MIX").select(wait.max()).collect().item()
    )


@slow
def test_a_mix_that_is_left_over_and_ignored_waits_many_times_longer(tmp_path: Path) -> None:
    plain = recorded(tmp_path / "plain.trace")
    faulty = recorded(tmp_path / "faulty.trace", "left-over-mix-ignored")

    assert longest_wait_ns(faulty) > 4 * longest_wait_ns(plain)
    assert faulty.tasks.select((pl.col("outcome") == "pending").sum()).collect().item() == 0


@slow
def test_a_task_that_must_start_together_starts_in_part(tmp_path: Path) -> None:
    settings = dict(fault("sync-start-in-part").settings)
    plain = recorded(tmp_path / "plain.trace", **settings)
    faulty = recorded(tmp_path / "faulty.trace", "sync-start-in-part", **settings)

    assert moments_of_sync_tasks(plain) == {1}
    assert max(moments_of_sync_tasks(faulty)) > 1


def moments_of_sync_tasks(trace: Trace) -> set[int]:
    """In how many moments the blocks of each all-or-nothing task were dispatched."""
    together = trace.tasks.filter("is_sync_start").select("task")
    moments = (
        trace.core_spans.join(together, on="task", how="semi")
        .group_by("task")
        .agg(pl.col("dispatch_ns").n_unique())
    )
    return set(moments.collect()["dispatch_ns"])
