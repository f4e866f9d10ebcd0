"""`slot-recycling` on a real decoder: the report's proof, its profile, and what faults break."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from stepscope.engine.executors.decoding.profiling import KINETO_FILE
from stepscope.engine.faults import Fault, faults_of
from stepscope.engine.requests.request import EOS_TOKEN
from stepscope.engine.runs.scenario import Metric, Options
from stepscope.engine.scenarios.slot_recycling import SlotRecycling
from stepscope.ingest.errors import MissingExtra
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.rows import Rows
from tests.tiers import slow

SCENARIO = SlotRecycling()
COUNTS = ("steps", "admits", "midstream", "refreshes", "masked_rows", "tokens")
EQUAL_UNDER = {
    "skip-mirror-refresh": False,
    "recycle-without-clearing": False,
    "masked-row-leak": False,
    "refill-when-drained": True,
    "one-slot-used": True,
    "token-after-eos": False,
    "token-past-cap": False,
    "cap-before-eos": True,
}


def on_torch(settings: dict[str, str] | None = None, *, profile: bool = False) -> Options:
    return replace(asked(settings), executor="torch", profile=profile)


def metrics(variant: str, **settings: str) -> dict[str, Metric]:
    return SCENARIO.record(variant, None, on_torch(settings)).metrics


@pytest.mark.parametrize("variant", ["before", "after"])
def test_every_stream_equals_its_solo_run_and_the_steps_are_the_reports(variant: str) -> None:
    found = metrics(variant, ignore_eos="true")

    assert found["equal_to_solo"] == "6/6"
    assert [found[name] for name in COUNTS] == [26, 6, 3, 3 * (variant == "before"), 2, 82]


@slow
def test_the_large_run_too() -> None:
    found = metrics("after", slots="4", requests="8", max_cap="48", ignore_eos="true")

    assert found["equal_to_solo"] == "8/8"
    assert [found[name] for name in COUNTS] == [65, 8, 4, 0, 60, 208]


def test_an_output_ends_where_the_model_says_so_and_its_slot_is_taken_again(tmp_path: Path) -> None:
    found = SCENARIO.record("after", tmp_path / "run", on_torch()).metrics
    rows = Rows.read(Trace.open(tmp_path / "run"))

    ends = [(row["request"], row["num_generated"]) for row in rows.of("lifecycle", cause="eos")]
    assert ends == [("req-00", 9)]
    (end,) = rows.of("outputs", token=EOS_TOKEN)
    assert (end["request"], end["position"]) == ("req-00", 8)
    (freed,) = rows.of("allocations", op="release", owner="req-00")
    assert rows.of("allocations", op="claim", id=freed["id"], generation=1)
    assert (found["equal_to_solo"], found["tokens"]) == ("6/6", 79)


@slow
def test_outputs_that_ignore_the_end_tell_of_none_and_go_on_to_their_caps(tmp_path: Path) -> None:
    SCENARIO.record("after", tmp_path / "run", on_torch({"ignore_eos": "true"}))
    rows = Rows.read(Trace.open(tmp_path / "run"))

    assert rows.of("outputs", token=EOS_TOKEN) == rows.of("lifecycle", cause="eos") == []
    assert len(rows.of("outputs", request="req-00")) == 12


@slow
@pytest.mark.parametrize("fault", faults_of("slot-recycling"), ids=lambda fault: fault.name)
def test_a_fault_shows_in_the_tokens_where_it_touches_them(fault: Fault) -> None:
    assert {each.name for each in faults_of("slot-recycling")} == set(EQUAL_UNDER)
    found = metrics(fault.variant, **fault.settings, fault=fault.name)

    assert (found["equal_to_solo"] == "6/6") == EQUAL_UNDER[fault.name]


def test_torch_schedules_as_the_cost_model_does(tmp_path: Path) -> None:
    recorded = []
    to_caps = {"ignore_eos": "true"}
    for options in (asked(to_caps), on_torch(to_caps)):
        path = tmp_path / str(options.executor)
        SCENARIO.record("before", path, options)
        recorded.append(Rows.read(Trace.open(path)))
    priced, decoded = recorded

    for table in ("batch_rows", "allocations", "outputs"):
        differing = ("ts_ns", "digest", "solo_digest")
        one, other = (
            [{name: row[name] for name in row if name not in differing} for row in each.of(table)]
            for each in (priced, decoded)
        )
        assert one == other


def test_another_seed_is_another_model_and_equals_its_own_solo_runs() -> None:
    options = replace(on_torch({"requests": "2", "max_cap": "6"}), seed=5)

    assert SCENARIO.record("after", None, options).metrics["equal_to_solo"] == "2/2"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("profiled") / "run.trace"
    sizes = {"slots": "2", "requests": "3", "max_cap": "4", "slot_tokens": "64"}
    SCENARIO.record("after", path, on_torch(sizes, profile=True))
    return Trace.open(path)


def test_a_profile_is_kept_in_the_trace_and_reads_as_the_same_steps(
    profiled: Trace,
) -> None:
    kept = Trace.open(Path(str(profiled.path)) / KINETO_FILE)

    columns = ["kind", "num_prefill_tokens", "num_decode_tokens"]
    ours, theirs = (trace.table("steps").select(columns).collect() for trace in (profiled, kept))
    assert ours.rows() == theirs.rows()


def test_spans_of_a_profile_lie_within_their_steps_on_the_traces_clock(profiled: Trace) -> None:
    steps = profiled.table("steps").select(
        "step", begin="ts_ns", end=pl.col("ts_ns") + pl.col("dur_ns")
    )
    spans = profiled.table("spans").drop_nulls("step").join(steps, on="step").collect()

    # The profiler converts its clock's ticks: a wrong epoch is seconds off, the conversion is not.
    slack_ns = 10_000_000
    assert len(spans) > 100
    assert set(spans["step"]) == set(steps.collect()["step"])
    assert (spans["ts_ns"] >= spans["begin"] - slack_ns).all()
    assert (spans["ts_ns"] + spans["dur_ns"].fill_null(0) <= spans["end"] + slack_ns).all()


def test_a_profiled_run_is_a_wall_clock_run_of_the_model_that_the_manifest_names(
    profiled: Trace,
) -> None:
    manifest = profiled.manifest

    assert manifest.clock.kind == "wall"
    assert manifest.clock.epoch_ns > 0
    assert manifest.config["executor"] == "torch"
    assert manifest.config["model"]["num_layers"] == 2


def test_without_torch_the_executor_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)

    with pytest.raises(MissingExtra, match=r"pip install 'stepscope\[torch\]'"):
        metrics("before")


def test_a_wrong_token_is_told_by_its_digest(tmp_path: Path) -> None:
    rows = []
    for faults in ({}, {"fault": "recycle-without-clearing"}):
        path = tmp_path / str(len(faults))
        SCENARIO.record("after", path, on_torch(faults))
        rows.append(Rows.read(Trace.open(path)).of("outputs"))
    sound, faulty = rows

    assert all(row["digest"] == row["solo_digest"] is not None for row in sound)
    wrong = [row["position"] for row in faulty if row["digest"] != row["solo_digest"]]
    assert wrong
    assert min(wrong) > 0
