"""The policy's own source in an editor: frames in it, stops at its lines, or why there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.app.dap.policy_source import decided_at, policy_frames
from stepscope.app.debug.debugger import Debugger
from stepscope.engine.schedulers import bucketed
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.looped import looped
from tests.traces import trace_of

FILE = str(Path(bucketed.__file__).resolve())


def decided(*sites: str | None) -> Debugger:
    """A decision at each of these sites, in as many steps."""
    decisions: list[dict[str, Any]] = [
        {"step": at, "ts_ns": at, "subject_kind": "request", "subject": f"r{at}",
         "verdict": "deferred", "site": site}
        for at, site in enumerate(sites)
    ]  # fmt: skip
    steps = [{"step": at, "ts_ns": at, "kind": "decode"} for at in range(len(sites))]
    return Debugger(trace_of(steps=steps, decisions=decisions))


@pytest.fixture
def before(sample_traces: Path) -> Debugger:
    return Debugger(Trace.open(sample_traces / "fcfs-preemption-before.trace"))


def test_frames_of_a_site_that_is_at_hand_lie_in_its_file_innermost_first(
    before: Debugger,
) -> None:
    sites = before.trace.decisions.select("site").drop_nulls().unique().collect()["site"]
    site = next(each for each in sites if "_set_aside" in each)

    frames = policy_frames(site, 1, 1)

    assert [frame["name"] for frame in frames] == ["_set_aside", "_decode", "schedule"]
    assert {frame["source"]["path"] for frame in frames} == {FILE}
    lines = [frame["line"] for frame in policy_frames(site, 0, 0)]
    assert [line + 1 for line in lines] == [frame["line"] for frame in frames]


def test_frames_of_a_site_that_is_not_at_hand_have_a_name_and_no_file() -> None:
    frames = policy_frames("mine/policy.py: schedule+7 > _pick+2 [01234567]", 1, 1)

    assert frames == [
        {"name": "_pick+2", "line": 0, "column": 0},
        {"name": "mine/policy.py: schedule+7", "line": 0, "column": 0},
    ]


@looped(
    ("sites", "said"),
    [
        ((None,), "the trace does not say where a policy decides"),
        (("mine/policy.py: schedule+7 [01234567]",), "mine/policy.py is no file of this stepscope"),
        (("engine/schedulers/bucketed.py: schedule+7 [01234567]",), "is not the one of this"),
        (("it's > ' no site",), "names no function"),
    ],
)
def test_where_no_line_can_be_told_it_says_why(sites: tuple[str | None, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        decided_at(decided(*sites), FILE, 3)


def test_every_line_that_is_offered_has_decisions_and_together_they_are_all(
    before: Debugger,
) -> None:
    num = before.trace.decisions.drop_nulls("site").collect().height
    with pytest.raises(ConfigError, match="some were at") as refused:
        decided_at(before, FILE, 1)
    outermost = [
        policy_frames(site, 1, 1)[-1]["line"]
        for site in before.trace.decisions.select("site").drop_nulls().unique().collect()["site"]
    ]

    found = [before.find(decided_at(before, FILE, line)) for line in sorted(set(outermost))]

    assert str(min(outermost)) in str(refused.value)
    assert sum(map(len, found)) == num
