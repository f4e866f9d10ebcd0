"""One model, and each situation run once, whatever is asked of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vllm.runs import Run, run_all
from tests.vllm.situations import IN_PROCESS
from tests.vllm.tiny_llama import make


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama small enough that scheduling it takes as long as running it."""
    return make(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def in_process(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """The situations of engines that run in the caller's own process, by name."""
    return run_all([each() for each in IN_PROCESS], model, tmp_path_factory.mktemp("in-process"))
