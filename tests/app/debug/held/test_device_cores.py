"""The cores that a manifest tells of."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.diff.run_inputs import inputs
from stepscope.app.debug import Session
from stepscope.app.debug.held.device_cores import device_cores
from stepscope.app.debug.why import why
from stepscope.engine.scenarios import Options
from stepscope.ingest.manifest import Manifest
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import slow


def test_a_core_that_never_ran_is_told_of_and_is_idle(recorded_once: RecordedOnce) -> None:
    lost = Options(faults=frozenset({"deferred-completion-lost"}))
    trace = recorded_once.trace("mix-admission", "after", lost)
    ran = set(trace.core_spans.select("core").unique().collect()["core"])

    session = Session(trace)
    session.goto(step=session.moments.steps[-1])

    assert session.state.cores is not None
    idle = sorted(set(range(24)) - ran)
    assert sorted(session.state.cores) == list(range(24))
    assert idle
    assert session.state.cores[idle[0]].state == "idle"
    assert why(session, f"core {idle[0]}").root.ends == "not waiting"


@slow
def test_the_engine_tells_its_groups_threads_and_costs(recorded_once: RecordedOnce) -> None:
    options = Options(settings={"groups": "2", "threads": "2", "steps": "1", "requests": "2"})
    manifest = recorded_once.trace("mix-admission", "after", options).manifest
    device: Any = manifest.config["device"]

    assert device["groups"] == [
        {"thread": 0, "AIC": 0, "AIV0": 2, "AIV1": 3},
        {"thread": 1, "AIC": 1, "AIV0": 4, "AIV1": 5},
    ]
    assert (device["costs"]["poll_ns"], device["costs"]["switch_ns"]) == (100, 810)
    assert device_cores(manifest)[5] == (1, "AIV1")


@looped(
    "device",
    [None, 3, [], {}, {"groups": 7}, {"groups": [1, "a", None]},
     {"groups": [{"AIC": "0", "AIV0": -1, "AIV1": True}, {"AIC": 2**40, "AIV0": 1.0}]}],
)  # fmt: skip
def test_what_is_no_device_tells_of_no_core(device: object) -> None:
    assert device_cores(Manifest("anybody", config={"device": device})) == {}


@slow
def test_a_device_of_another_size_is_given_differently_by_its_setting_alone(
    recorded_once: RecordedOnce,
) -> None:
    traces = []
    for groups in ("2", "4"):
        options = Options(settings={"groups": groups, "steps": "1", "requests": "2"})
        traces.append(recorded_once.trace("mix-admission", "after", options))

    assert [each.what for each in inputs(*traces)] == ["settings.groups"]
