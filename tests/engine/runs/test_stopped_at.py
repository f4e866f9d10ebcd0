"""What ended a run of several ranks, said with the first operation at which they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.engine.parallel.links.transport import (
    ALL_REDUCE,
    BROADCAST,
    DEADLOCK,
    NOT_JOINED,
)
from stepscope.engine.runs.stopped_at import stopped_at
from stepscope.ingest.storage.saving import save_trace
from tests.traces import trace_of


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Two ranks, of which the second skips a broadcast."""
    ops = {0: [BROADCAST, BROADCAST, ALL_REDUCE], 1: [BROADCAST, ALL_REDUCE]}
    save_trace(
        trace_of(
            collectives=[
                {"rank": rank, "ordinal": ordinal, "ts_ns": ordinal, "op": op, "dtype": "float32",
                 "num_elements": 4}
                for rank, each in ops.items()
                for ordinal, op in enumerate(each)
            ]
        ),
        tmp_path / "run.trace",
    )  # fmt: skip
    return tmp_path / "run.trace"


@pytest.mark.parametrize(
    ("stopped", "how"),
    [(f"rank 0 waits in all-reduce, and {NOT_JOINED} within 5 s", "timeout"),
     (f"{DEADLOCK}: at operation 1 broadcast faces all-reduce", "deadlock")],
)  # fmt: skip
def test_where_ranks_wait_for_each_other_both_sides_are_named(
    stopped: str, how: str, journal: Path
) -> None:
    assert stopped_at(stopped, journal) == f"{how} at operation 1: broadcast faces all-reduce"


def test_a_rank_that_left_is_told_in_its_own_words(journal: Path) -> None:
    assert stopped_at("rank 1 has left: it refused", journal) == "rank 1 has left: it refused"


def test_a_run_that_nothing_stopped_has_no_such_operation(journal: Path) -> None:
    assert stopped_at(None, journal) is None
