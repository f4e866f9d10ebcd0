"""BUF006: a live slot's contents change across another's admission."""

from __future__ import annotations

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.buf.buf006_peer_disturbed import PeerDisturbed
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row
from tests.analyzers.rules.kvb.test_kvb005_dirty_recycle import LAYOUT, access
from tests.analyzers.serving_rows import owned
from tests.looped import looped
from tests.traces import trace_of

SLOTS = [owned("claim", 0, "a", 10, resource="slot"), owned("claim", 1, "b", 50, resource="slot")]


def disturbed(*rows: Row) -> list[Finding]:
    return PeerDisturbed().check(trace_of(accesses=rows, allocations=SLOTS, config=LAYOUT))


def test_older_contents_in_a_live_slot_are_found() -> None:
    written = [access("write", 20, 1, slot=0), access("write", 30, 2, slot=0)]

    (found,) = disturbed(*written, access("write", 60, 1, slot=0, step=50))

    assert found.message == (
        "admitting b took 1 live slot back to older contents: first that of a (slot 0), "
        "from epoch 2 to 1"
    )
    assert (found.request, found.step, found.ts_ns) == ("a", 50, 60)


@looped(
    "write",
    [
        pytest.param(access("write", 60, 2, slot=0), id="the same contents"),
        pytest.param(access("write", 60, 3, slot=0), id="newer contents"),
        pytest.param(access("write", 60, 1, slot=0, buffer="mirror"), id="another buffer"),
        pytest.param(access("write", 60, 1, slot=1), id="the slot that is admitted"),
        pytest.param(access("read", 60, 1, slot=0), id="a read"),
    ],
)
def test_other_accesses_are_clean(write: Row) -> None:
    written = [access("write", 20, 1, slot=0), access("write", 30, 2, slot=0)]

    assert disturbed(*written, write) == []


def test_only_who_got_a_slot_in_the_step_is_said_to_be_admitted() -> None:
    written = [access("write", 20, 1, slot=0), access("write", 30, 2, slot=0)]
    gone_back = access("write", 60, 1, slot=0, step=50)
    others = [owned("claim", 7, "c", 50), owned("release", 1, "d", 50, resource="slot")]

    (found,) = PeerDisturbed().check(
        trace_of(accesses=[*written, gone_back], allocations=SLOTS + others, config=LAYOUT)
    )

    assert found.evidence["admitted"] == "b"


def test_a_slot_that_goes_back_in_the_step_that_claims_it_is_not_live_yet() -> None:
    written = [access("write", 60, 2, slot=1, step=50), access("write", 61, 1, slot=1, step=50)]

    assert disturbed(*written) == []
    assert not PeerDisturbed().applies(trace_of(accesses=written, allocations=SLOTS, config=LAYOUT))


def test_a_commit_without_a_refresh_is_found(record: Record) -> None:
    found = PeerDisturbed().check(record("slot-recycling", "before", "skip-mirror-refresh"))

    assert [(each.step, each.count, each.evidence["slots"]) for each in found] == [
        (12, 2, 2), (14, 1, 1),
    ]  # fmt: skip
    assert found[0].evidence["admitted"] == "req-03"


@looped("variant", ["before", "after"])
def test_neighbours_that_are_left_alone_are_clean(record: Record, variant: str) -> None:
    settings = {"slots": "4", "requests": "8", "max_cap": "48"}

    assert PeerDisturbed().check(record("slot-recycling", variant)) == []
    assert PeerDisturbed().check(record("slot-recycling", variant, **settings)) == []


def test_slots_of_unknown_size_cannot_be_judged(record: Record) -> None:
    pytest.importorskip("torch")

    result = check(record("ep-multiplexing"), (PeerDisturbed(),))

    assert result.not_applicable == ("BUF006",)
