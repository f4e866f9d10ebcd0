"""The sample traces are what the project's own commands make, and stay small."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from polars.testing import assert_frame_equal

from stepscope.ingest.schema import FORMAT_VERSION, TABLES
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow

LIMIT_BYTES = 350_000
SAMPLES = sorted(
    path
    for path in (ROOT / "sample_traces").iterdir()
    if path.suffix not in {".py", ".md"} and path.name != "__pycache__"
)


def maker(name: str = "make.py") -> ModuleType:
    path = ROOT / "sample_traces" / name
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


@slow
@looped("name", list(maker().SIMULATED))
def test_a_simulated_sample_is_what_its_command_records(remade: Path, name: str) -> None:
    committed = Trace.open(ROOT / "sample_traces" / name)
    again = Trace.open(remade / name)

    # A sample stays in the format in which it was made.
    assert again.manifest == replace(committed.manifest, format_version=FORMAT_VERSION)
    for table in TABLES:
        assert_frame_equal(again.table(table.name).collect(), committed.table(table.name).collect())


@looped("path", SAMPLES, ids=lambda path: str(path.name))
def test_a_sample_is_under_350_kb(path: Path) -> None:
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]

    assert sum(file.stat().st_size for file in files) < LIMIT_BYTES


def test_there_is_a_sample_of_each_kind() -> None:
    profiles = {"torch_profiler_cpu.json.gz", "torch_executor_cpu.json.gz"}

    perfetto = maker("make_perfetto.py").OUT.name
    folders = {maker("make_torch_gloo.py").OUT.name, "jax_cpu"}
    recorded = {"vllm_crowd.trace", "vllm_prefixes.trace", "vllm_prefixes_0.23.trace"}
    of_sglang = {
        "sglang_retractions.trace", "sglang_scheduler.log", "sglang_kv_events.msgpack",
    }  # fmt: skip
    logged = {"vllm_engine.log"}
    assert {path.name for path in SAMPLES} == {
        *maker().SIMULATED,
        *profiles,
        *folders,
        perfetto,
        *recorded,
        *of_sglang,
        *logged,
    }


def test_the_perfetto_sample_is_what_its_script_writes(tmp_path: Path) -> None:
    module = maker("make_perfetto.py")

    module.make(tmp_path / "again.pftrace")

    assert (tmp_path / "again.pftrace").read_bytes() == module.OUT.read_bytes()


def test_the_perfetto_sample_has_two_ranks_that_meet_in_every_step(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "perfetto_two_ranks.pftrace")

    steps, collectives = trace.steps.collect(), trace.collectives.collect()
    assert trace.manifest.ranks == (0, 1)
    assert steps["kind"].to_list().count("prefill") == 2
    assert len(steps) == len(collectives) == 48
    by_rank = collectives.partition_by("rank")
    late_ns = by_rank[1]["ts_ns"] - by_rank[0]["ts_ns"]
    assert set(late_ns) == {0, 3_000_000}
    assert (late_ns > 0).arg_true().to_list() == [6, 7]
    assert set(trace.spans.collect().filter(name="decoder_layer")["step"]) == set(range(1, 25))


def test_the_executors_profile_has_the_steps_that_its_command_runs(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "torch_executor_cpu.json.gz")

    kinds = trace.table("steps").collect()["kind"].to_list()
    assert [kinds.count(kind) for kind in ("prefill", "mixed", "decode")] == [4, 3, 13]
    assert {name for name in trace.table("spans").collect()["name"] if "segment" in name} == {
        "prefill segment", "decode segment",
    }  # fmt: skip


@slow
def test_both_ranks_over_gloo_run_the_batches_and_one_is_late() -> None:
    """The rank that waits is in the first all-reduce of the late steps for as long as it waits."""
    gloo = maker("make_torch_gloo.py")

    trace = Trace.open(gloo.OUT)

    counts = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs")
    by_rank = trace.steps.collect().partition_by("rank")
    assert [steps.select(counts).rows() for steps in by_rank] == [list(gloo.BATCHES)] * 2
    all_reduces = trace.collectives.collect().filter(op="all_reduce").partition_by("rank")
    waited_ns = all_reduces[0]["dur_ns"] - all_reduces[1]["dur_ns"]
    late = (waited_ns > 0.75 * gloo.LATE_S * 1e9).arg_true().to_list()
    assert late == [2 * (step - 1) for step in gloo.LATE_STEPS]
