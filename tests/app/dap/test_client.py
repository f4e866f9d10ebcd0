"""Microsoft's own test client drives `stepscope dap` as an editor does: `client/*.test.js`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.app.replay.own_engine import rerun
from stepscope.engine.runs.rerun import Changes, run_to_its_end
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow

CLIENT = ROOT / "tests" / "app" / "dap" / "client"
TALKS = {path.name.removesuffix(".test.js") for path in CLIENT.glob("*.test.js")}
ALONE = {"broken", "session"}
"""Talks of which most tests end their adapter."""
FEW = Options(settings={"requests": "4", "max_tokens": "4", "prompt_len": "300"})


@pytest.fixture(scope="session")
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: no client drove the adapter")
    if not (CLIENT / "node_modules" / "@vscode" / "debugadapter-testsupport").is_dir():
        pytest.skip("Microsoft's test client is not installed: make check installs it by npm")
    return found


@pytest.fixture(scope="session")
def several_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks of which each has requests of its own."""
    path = tmp_path_factory.mktemp("ranks") / "ranks.trace"
    run_to_its_end(scenario("mixed-batches"), "data-parallel", path, FEW)
    return path


@pytest.fixture(scope="session")
def fixed(tmp_path_factory: pytest.TempPathFactory, sample_traces: Path) -> Path:
    """The run before its fix, run again with it."""
    path = tmp_path_factory.mktemp("fixed") / "fixed.trace"
    before = Trace.open(sample_traces / stories.BEFORE)
    rerun(before, Changes(stories.VARIANT), path)
    return path


@slow
@looped("talks", [*([talk] for talk in sorted(ALONE)), sorted(TALKS - ALONE)], ids=str)
def test_a_client_talks_with_the_adapter(
    talks: list[str],
    node: str,
    sample_traces: Path,
    several_ranks: Path,
    fixed: Path,
    tmp_path: Path,
) -> None:
    traces = {
        "before": sample_traces / stories.BEFORE,
        "after": sample_traces / stories.AFTER,
        "ranks": several_ranks,
        "fixed": fixed,
    }
    given = {
        "command": [sys.executable, "-m", "stepscope.app"],
        "traces": {name: str(path) for name, path in traces.items()},
        "stories": {name: told for name, told in vars(stories).items() if name.isupper()},
    }

    run = subprocess.run(
        [node, str(CLIENT / "together.js"), json.dumps(given), *talks],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    assert run.returncode == 0, run.stdout + run.stderr
    assert "fail 0" in run.stdout
