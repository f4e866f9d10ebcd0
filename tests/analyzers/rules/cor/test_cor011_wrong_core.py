"""COR011: a block ran on a core that is not of the kind or the group it was meant for."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.rules.cor.cor011_wrong_core import WrongCore
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import part
from tests.looped import looped
from tests.traces import trace_of

# Two groups: AICs 0 and 1, then the AIVs of group 0, 2 and 3, and those of group 1, 4 and 5.
TWO_GROUPS = {"settings": {"groups": 2}}


def test_a_core_of_another_group_is_found_by_the_configuration() -> None:
    span = part(1, 2, 100, 900, group=1, core_kind="AIC")

    (found,) = WrongCore().check(trace_of(core_spans=[span], config=TWO_GROUPS))

    assert (found.task, found.core, found.group, found.ts_ns) == (1, 2, 1, 100)
    assert found.message == (
        "AIC of group 1 is core 1, but its blocks ran on core 2, AIV0 of group 0: "
        "1 block (task 1 0)"
    )
    assert found.evidence["known from"] == "configuration"


def test_cores_may_be_configured_one_by_one() -> None:
    device = {"device": {"core_types": ["aic", "aiv", "aiv"]}}
    right = [part(1, 2, 100, 900, group=0, core_kind="AIV1")]
    wrong = [part(1, 2, 100, 900, group=0, core_kind="AIC")]

    assert WrongCore().check(trace_of(core_spans=right, config=device)) == []
    assert len(WrongCore().check(trace_of(core_spans=wrong, config=device))) == 1


def test_without_a_configuration_most_blocks_of_a_core_say_what_it_is() -> None:
    spans = [part(n, 4, 100 * n, 100 * n + 50) for n in range(5)]
    spans += [part(9, 4, 900, 950, group=22, core_kind="AIC")]

    (found,) = WrongCore().check(trace_of(core_spans=spans))

    assert (found.task, found.group) == (9, 22)
    assert "AIC of group 22: its blocks ran on core 4, AIV0 of group 1" in found.message
    assert found.evidence["known from"] == "majority of blocks"


def test_a_core_whose_blocks_do_not_agree_proves_nothing() -> None:
    spans = [part(1, 4, 100, 150), part(2, 4, 200, 250, group=22, core_kind="AIC")]

    assert WrongCore().check(trace_of(core_spans=spans)) == []


def test_blocks_of_one_place_on_one_core_are_one_finding() -> None:
    spans = [part(n, 2, 100 * n, 900, group=1, core_kind="AIC") for n in (3, 1, 2)]

    (found,) = WrongCore().check(trace_of(core_spans=spans, config=TWO_GROUPS))

    assert (found.count, found.task, found.ts_ns) == (3, 1, 100)


@looped("config", [{"settings": 5}, {"device": {"core_types": ["gpu"]}}, {}])
def test_a_configuration_that_says_nothing_of_cores_is_passed_over(
    config: dict[str, object],
) -> None:
    assert WrongCore().check(trace_of(core_spans=[part(1, 2, 0, 9)], config=config)) == []


@looped(
    "case",
    ["TestMixedExample_case1", "TestQwen2L_StressBatch16Seq3500", "TestSpmdStarvation_Case1"],
)
def test_a_real_runtime_uses_the_cores_that_it_means(shared_data: Path, case: str) -> None:
    assert WrongCore().check(Trace.open(shared_data / "swimlane" / case)) == []


@looped(("shape", "core"), [("AIC", 1), ("AIV", 0)])
def test_a_block_whose_shape_needs_another_kind_of_core_is_found(shape: str, core: int) -> None:
    """Where it was said to be meant for the very core that it ran on."""
    span = part(1, core, 100, 900, shape=shape, core_kind=("AIC", "AIV0")[core])
    device = {"device": {"core_types": ["aic", "aiv", "aiv"]}}

    (found,) = WrongCore().check(trace_of(core_spans=[span], config=device))

    assert found.evidence["meant for"] == f"{shape} of group 0"
    assert found.evidence["that core is"] == f"{('AIC', 'AIV0')[core]} of group 0"
