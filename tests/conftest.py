"""Fixtures that every room shares."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.engine.recorded_once import RecordedOnce, recording_digest, shared_runs
from tests.recorded import RecordedRun, unpack
from tests.tiers import QUICK

DRAWS_NEW = "STEPSCOPE_HYPOTHESIS_RANDOM"
"""Set where property tests are to draw other examples each time, as in `make test-all`."""

# A slow machine is not a failure, and the same code has the same outcome: red means broken.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=not os.environ.get(DRAWS_NEW),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("house"), max_examples=40)
settings.load_profile("house")

COLLECT_EVERY = 100_000
"""Objects made before garbage is looked for; Python has it at 700."""

ROOT = Path(__file__).resolve().parent.parent

# Engines that we did not write are run where they are installed: make test-vllm, test-sglang.
collect_ignore = [name for name in ("vllm", "sglang") if find_spec(name) is None]

# No test reads or writes the cache or the marks of whoever runs it; those of these name their own.
os.environ["STEPSCOPE_CACHE"] = os.environ["STEPSCOPE_STATE"] = "off"


def pytest_configure(config: pytest.Config) -> None:
    """Draw fewer examples of properties where the slow tests are left out."""
    if config.getoption("markexpr") == "not slow":
        os.environ[QUICK] = "1"
        settings.load_profile("quick")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start one worker more than there are cores: a third of the time tests wait for a process."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and not among what was imported: it took an eighth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY)


def pytest_report_header() -> str:
    """Say what is not collected, and how it is run."""
    return "; ".join(
        f"not collected, as it is not installed here: tests/{name} (make test-{name})"
        for name in collect_ignore
    )


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files written by other people's programs; skips where they are absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real files, ../shared/data, is absent")
    return folder


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RecordedRun]:
    """Recorded runs of a real engine, each unpacked but once; skips where they are absent."""
    shared = ROOT.parent / "shared" / "recorded"
    seen: dict[str, RecordedRun] = {}

    def unpacked(name: str) -> RecordedRun:
        if not shared.is_dir():
            pytest.skip("the folder of recorded runs, ../shared/recorded, is absent")
        if name not in seen:
            seen[name] = unpack(shared, name, tmp_path_factory.mktemp(name))
        return seen[name]

    return unpacked


@pytest.fixture(scope="session")
def recorded_once() -> Iterator[RecordedOnce]:
    """Runs of the reference engine, each recorded once while the source that records it stays."""
    with shared_runs(ROOT / "out" / "recorded", recording_digest()) as runs:
        yield runs


@pytest.fixture(scope="session")
def sample_traces() -> Path:
    """The traces that the project made itself."""
    return ROOT / "sample_traces"
