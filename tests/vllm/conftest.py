"""One model, and each situation run once, whatever is asked of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepscope.ingest.recording.closing import close_recording
from tests.vllm.runs import Run, run_all, trace_folders
from tests.vllm.situations import IN_PROCESS
from tests.vllm.tiny_llama import make


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama small enough that scheduling it takes as long as running it."""
    return make(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def in_process(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The situations of engines that run in the caller's own process, by name.

    `STEPSCOPE_VLLM_RUNS` names a folder where they were recorded before, such as on a GPU.
    """
    recorded = os.environ.get("STEPSCOPE_VLLM_RUNS")
    if recorded:
        for trace in trace_folders(Path(recorded)):
            if any(trace.glob("journal.rank=*")):
                close_recording(trace)
        return {each.__name__: Run(Path(recorded) / each.__name__) for each in IN_PROCESS}
    return run_all([each() for each in IN_PROCESS], model, tmp_path_factory.mktemp("in-process"))
