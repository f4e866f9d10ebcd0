"""COL006: ranks speak different versions."""

from __future__ import annotations

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col006_protocol_skew import ProtocolSkew
from tests.analyzers.conftest import Record
from tests.looped import looped
from tests.traces import trace_of


def skewed(*versions: float, name: str = "protocol version") -> list[Finding]:
    rows = [{"rank": rank, "name": name, "value": value} for rank, value in enumerate(versions)]
    return ProtocolSkew().check(trace_of(counters=rows))


def test_ranks_of_another_version_than_the_first_are_found() -> None:
    (found,) = skewed(1, 2, 2)

    assert found.message == (
        "rank 0 speaks version 1 of the protocol and 2 ranks speak version 2: first rank 1"
    )
    assert (found.rank, found.count) == (1, 2)


def test_each_version_is_a_finding() -> None:
    assert [each.evidence["version"] for each in skewed(2, 1, 3, 2)] == [1, 3]


@looped("versions", [(2,), (2, 2), (2, float("nan"))])
def test_one_version_is_clean(versions: tuple[float, ...]) -> None:
    assert skewed(*versions) == []


def test_other_counters_are_no_versions() -> None:
    assert skewed(1, 2, name="masked rows") == []


def test_a_head_without_slots_and_a_worker_with_them_are_found(record: Record) -> None:
    (found,) = ProtocolSkew().check(record("ep-multiplexing", "before", "v1-head-v2-worker"))

    assert (found.rank, found.evidence["version"]) == (1, 2)


@looped("variant", ["before", "after"])
def test_ranks_of_one_version_are_clean(record: Record, variant: str) -> None:
    assert ProtocolSkew().check(record("ep-multiplexing", variant, max_tokens="5")) == []
