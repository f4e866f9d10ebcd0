"""The sample traces are what the project's own commands make, and stay small."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from polars.testing import assert_frame_equal

from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT

LIMIT_BYTES = 300_000
SAMPLES = sorted(
    path for path in (ROOT / "sample_traces").iterdir() if path.name.endswith((".trace", ".gz"))
)


def maker() -> ModuleType:
    path = ROOT / "sample_traces" / "make.py"
    spec = importlib.util.spec_from_file_location("make_samples", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    assert maker().make(folder) == 0
    return folder


@pytest.mark.parametrize("name", list(maker().SIMULATED))
def test_a_simulated_sample_is_what_its_command_records(remade: Path, name: str) -> None:
    committed = Trace.open(ROOT / "sample_traces" / name)
    again = Trace.open(remade / name)

    assert again.manifest == committed.manifest
    for table in TABLES:
        assert_frame_equal(again.table(table.name).collect(), committed.table(table.name).collect())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: str(path.name))
def test_a_sample_is_under_300_kb(path: Path) -> None:
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]

    assert sum(file.stat().st_size for file in files) < LIMIT_BYTES


def test_there_is_a_sample_of_each_kind() -> None:
    profiles = {"torch_profiler_cpu.json.gz", "torch_executor_cpu.json.gz"}

    assert {path.name for path in SAMPLES} == {*maker().SIMULATED, *profiles}


def test_the_executors_profile_has_the_steps_that_its_command_runs(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "torch_executor_cpu.json.gz")

    kinds = trace.table("steps").collect()["kind"].to_list()
    assert [kinds.count(kind) for kind in ("prefill", "mixed", "decode")] == [4, 3, 13]
    assert {name for name in trace.table("spans").collect()["name"] if "segment" in name} == {
        "prefill segment", "decode segment",
    }  # fmt: skip
