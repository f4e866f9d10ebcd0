from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.replay.fidelity import Kind
from stepscope.app.replay.what_if.choices import choices_of
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.tui.stage import conflict_trace
from tests.engine.recorded_once import RecordedOnce


def recorded(trace: Trace) -> dict[str, str]:
    return {each.words: each.recorded for each in choices_of(trace).listed()}


def test_variants_faults_and_settings_are_listed_with_what_was_recorded(
    recorded_once: RecordedOnce,
) -> None:
    options = Options(faults=frozenset({"one-slot-used"}), settings={"requests": "6"})

    found = recorded(recorded_once.trace("slot-recycling", "after", options))

    assert found["--variant before"] == "after"
    assert "--variant after" not in found
    assert found["--no-fault one-slot-used"] == "on"
    assert found["--set requests=6"] == "6"


def test_a_virtual_clock_makes_it_exact_and_a_real_one_does_not(
    sample_traces: Path, recorded_once: RecordedOnce
) -> None:
    pytest.importorskip("torch")
    before = Trace.open(sample_traces / stories.BEFORE)
    settings = {"requests": "2", "layers": "1", "max_tokens": "2"}
    options = Options(executor="torch", settings=settings)
    real = recorded_once.trace("mixed-batches", "before", options)

    assert choices_of(before).kind is Kind.EXACT
    assert choices_of(real).kind is Kind.REAL_CLOCK


def test_of_another_engine_what_its_trace_does_not_tell_is_not_told(sample_traces: Path) -> None:
    crowd = Trace.open(sample_traces / "vllm_crowd.trace")

    found = recorded(crowd)

    assert choices_of(crowd).kind is Kind.RESIMULATED
    assert found["--set max_num_seqs=8"] == "8"
    assert found["--set backend=v4"] == "not told"
    assert found["--variant before"] == "not told"


def test_why_a_trace_cannot_be_run_otherwise_is_said_with_what_would_help(
    sample_traces: Path,
) -> None:
    profile = Trace.open(sample_traces / "torch_profiler_cpu.json.gz")

    with pytest.raises(ConfigError, match=r"requests are not told.*; record it with arrivals"):
        choices_of(profile)
    with pytest.raises(ConfigError, match=r"is in no file.*; save it"):
        choices_of(conflict_trace())
