"""The recordings, each opened and checked but once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.check.run import CheckResult, check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.findings.rule import Rule
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.trace import Trace
from tests.analyzers.samples.raw_trace import RawTrace
from tests.engine.recorded_once import RecordedOnce

VLLM = ("vllm_crowd", "vllm_prefixes", "vllm_prefixes_0.23")
DECLARED = {"block_size": 32, "max_num_seqs": 8, "num_blocks": 24}
"""What a recorder of today writes of the engine's limits, and that of these samples did not."""


EngineRun = Callable[..., "Sample"]


@dataclass(frozen=True)
class Sample:
    """A recording: as the product reads it, and as plain rows."""

    name: str
    folder: Path

    @cached_property
    def trace(self) -> Trace:
        """The trace, opened as any other."""
        return Trace.open(self.folder)

    @cached_property
    def raw(self) -> RawTrace:
        """Its rows."""
        return RawTrace(self.folder)

    @cached_property
    def checked(self) -> CheckResult:
        """What all rules say of it."""
        return check(self.trace)

    def findings(self, rule: Rule) -> list[Finding]:
        """What a rule with other thresholds than usual says of it."""
        result = check(self.trace, [rule])
        assert result.not_applicable == ()
        return list(result.findings)


@pytest.fixture(scope="session")
def samples(sample_traces: Path) -> dict[str, Sample]:
    """The recordings that are in every clone, by name."""
    folders = sorted(sample_traces.glob("*.trace"))
    return {each.stem: Sample(each.stem, each) for each in folders}


@pytest.fixture(scope="session")
def crowd(samples: dict[str, Sample]) -> Sample:
    """20 requests at once on a vLLM with 24 KV blocks."""
    return samples["vllm_crowd"]


@pytest.fixture(scope="session")
def of_vllm(samples: dict[str, Sample]) -> list[Sample]:
    """The recordings of a real vLLM."""
    return [samples[name] for name in VLLM]


@pytest.fixture(scope="session")
def sglang(samples: dict[str, Sample]) -> Sample:
    """16 requests on a real SGLang whose pool is too small for them."""
    return samples["sglang_retractions"]


@pytest.fixture(scope="session")
def engine_run(recorded_once: RecordedOnce) -> EngineRun:
    """Records a variant of a scenario of the reference engine with a fault and some settings."""
    seen: dict[str, Sample] = {}

    def run(name: str, variant: str, fault: str | None = None, **settings: str) -> Sample:
        key = f"{name} {variant} {fault} {settings}"
        if key not in seen:
            faults = frozenset({fault} if fault else ())
            options = Options(settings=settings, faults=faults)
            folder = recorded_once.run(name, variant, options).path
            assert folder is not None
            seen[key] = Sample(f"{name}-{variant}", folder)
        return seen[key]

    return run


@pytest.fixture(scope="session")
def declared(crowd: Sample, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The crowd, with its engine's limits in the manifest."""
    return copied(crowd, tmp_path_factory.mktemp("declared"), engine=DECLARED)


@pytest.fixture(scope="session")
def untold(crowd: Sample, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The crowd, of an engine that does not say why requests wait."""
    folder = tmp_path_factory.mktemp("untold")
    return copied(crowd, folder, engine=DECLARED, only={"decisions": pl.lit(value=False)})


def copied(
    sample: Sample,
    folder: Path,
    engine: dict[str, int] | None = None,
    only: Mapping[str, pl.Expr] | None = None,
) -> Sample:
    """A recording with other limits in its manifest, or with fewer rows in some tables."""
    copy = folder / sample.folder.name
    shutil.copytree(sample.folder, copy)
    if engine:
        manifest = dict(sample.raw.manifest)
        manifest["config"] = {**manifest["config"], "engine": engine}
        (copy / "manifest.json").write_text(json.dumps(manifest))
    for table, rows in (only or {}).items():
        for file in (copy / table).rglob("*.parquet"):
            pl.read_parquet(file, hive_partitioning=False).filter(rows).write_parquet(file)
    return Sample(sample.name, copy)
