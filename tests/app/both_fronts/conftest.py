"""Runs that several tests look at: of the engine, of others, and profiles."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from stepscope.engine.scenarios import SCENARIOS, scenario
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.both_fronts.looked import Looked
from tests.engine.recorded_once import RecordedOnce
from tests.tiers import sampled


def real_files(folder: Path) -> list[Path]:
    return sorted(
        path for kind in ("swimlane", "logs", "requests") for path in (folder / kind).iterdir()
    )


@pytest.fixture(
    params=sampled([each.name for each in SCENARIOS], ["mix-admission", "fcfs-preemption"]),
    scope="session",
)
def scenario_run(request: pytest.FixtureRequest, recorded_once: RecordedOnce) -> Looked:
    name: str = request.param
    return Looked(recorded_once.trace(name, scenario(name).variants[0]))


@pytest.fixture(scope="session")
def real_runs(
    shared_data: Path, sample_traces: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Looked]:
    unpacked = tmp_path_factory.mktemp("recorded")
    for archive in sorted((shared_data.parent / "recorded").glob("*.tar.xz")):
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
    paths = [
        *real_files(shared_data),
        *sorted(unpacked.glob("*.trace")),
        *sorted(sample_traces.glob("*.trace")),
    ]
    return [Looked(Trace.open(path)) for path in paths]


@pytest.fixture(scope="session")
def sample_run(sample_traces: Path) -> Looked:
    """A recorded run of vLLM."""
    return Looked(Trace.open(sample_traces / "vllm_prefixes.trace"))


@pytest.fixture(scope="session")
def sample_profiles(sample_traces: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Looked]:
    """Profiles that everybody has: by PyTorch's profiler, by Perfetto, and one of a GPU."""
    names = ("torch_profiler_cpu.json.gz", "perfetto_two_ranks.pftrace")
    of_gpu = stories.gpu_profile(tmp_path_factory.mktemp("gpu"))
    return [
        Looked(Trace.open(path)) for path in (*(sample_traces / name for name in names), of_gpu)
    ]


@pytest.fixture(scope="session")
def profiles(shared_data: Path, sample_traces: Path) -> list[Looked]:
    """Profiles by PyTorch's profiler, and one by Perfetto."""
    real = sorted((shared_data / "kineto").glob("*.json.gz"))
    own = [*sample_traces.glob("*.json.gz"), *sample_traces.glob("*.pftrace")]
    return [Looked(Trace.open(path)) for path in [*real, *sorted(own)]]
