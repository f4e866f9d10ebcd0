"""`ep-multiplexing` in NumPy and with torch: the same rows, and what runs where there is none."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.ep_runs import (
    HAS_TORCH,
    SCENARIO,
    SHORT,
    SIMULATED,
    TORCH,
)
from tests.engine.rows import Rows
from tests.tiers import slow

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from stepscope.app.cli import main
raise SystemExit(main())
"""

QUICK: list[tuple[str, dict[str, str]]] = [
    ("before", {"requests": "3", "ranks": "3"}),
    ("after", {"verify_width": "4", "max_tokens": "24"}),
    ("v2-device-staging", {}),
    ("v2-grouped-gemm", {}),
    ("after", {"fault": "compaction-on-one-side", "requests": "6", "stagger": "2"}),
]
OTHERS: list[tuple[str, dict[str, str]]] = [
    ("after", {"requests": "6", "stagger": "2"}),
    ("after", {"requests": "2"}),
    ("v2-host-staging", {}),
    ("after", {"fault": "slot-order-differs"}),
    ("after", {"fault": "v2-head-v1-worker"}),
    ("after", {"fault": "state-not-cleared", "requests": "8"}),
]


@slow
@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
@pytest.mark.parametrize(
    ("variant", "settings"), [*QUICK, *(pytest.param(*case, marks=slow) for case in OTHERS)]
)
def test_the_simulated_run_has_every_row_of_the_one_with_torch(
    tmp_path: Path, variant: str, settings: dict[str, str]
) -> None:
    came_to = []
    for executor in (SIMULATED, "expert-parallel"):
        path = tmp_path / executor
        options = replace(asked({**SHORT, **settings}), executor=executor)
        metrics = SCENARIO.record(variant, path, options).metrics
        came_to.append((metrics, Rows.read(Trace.open(path)).tables))

    assert came_to[0] == came_to[1]


@slow
def test_it_serves_where_there_is_no_torch(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "record", "ep-multiplexing", "-o", "x.trace"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0
    assert done.stderr.startswith("recorded x.trace\n")
    assert "4/4" in done.stdout


@slow
@pytest.mark.parametrize("executor", TORCH)
def test_an_executor_that_needs_torch_says_so_where_there_is_none(
    tmp_path: Path, executor: str
) -> None:
    done = subprocess.run(
        [
            sys.executable, "-c", WITHOUT_TORCH, "record", "ep-multiplexing",
            f"--executor={executor}", "-o", "x.trace",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode != 0
    assert "the model needs PyTorch" in done.stderr
    assert "Traceback" not in done.stderr


def test_costs_of_another_model_are_refused() -> None:
    with pytest.raises(ConfigError, match="takes no costs"):
        SCENARIO.record("after", None, Options(cost=CostModel()))


@slow
@pytest.mark.parametrize("executor", [SIMULATED, *(each for each in TORCH if HAS_TORCH)])
def test_one_rank_issues_no_collective(tmp_path: Path, executor: str) -> None:
    options = Options(settings={**SHORT, "ranks": "1"}, executor=executor)
    result = SCENARIO.record("after", tmp_path / "x.trace", options)

    assert result.metrics["collectives"] == 0
    assert result.metrics["equal_to_solo"] == "4/4"
    assert Rows.read(Trace.open(tmp_path / "x.trace")).of("collectives") == []
