"""Collectives between ranks in one process: they match by position, or nobody ever goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.clock import VirtualClock
from stepscope.engine.parallel.links.first_difference import explain, first_difference
from stepscope.engine.parallel.links.link import Link
from stepscope.engine.parallel.links.rendezvous import Rendezvous, RendezvousTransport
from stepscope.engine.parallel.links.transport import (
    ALL_REDUCE,
    BROADCAST,
    Disconnected,
    NoCommunicator,
    Operation,
)
from tests.engine.rows import Rows

WORD = Operation(BROADCAST, "uint32", 1, "slot", 2)
SUM = Operation(ALL_REDUCE, "float64", 4, "decode", 0)
End = RendezvousTransport


def on_ranks(place: Rendezvous, does: Sequence[Callable[[End], Any]]) -> list[Any]:
    """What each rank's function returned, or raised."""
    came_to: list[Any] = [None] * len(does)

    def run(rank: int) -> None:
        end = place.end(rank, VirtualClock(rank * 1000))
        try:
            came_to[rank] = does[rank](end)
        except Disconnected as error:
            came_to[rank] = error

    ranks = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(does))]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join(180)
    return came_to


def test_a_broadcast_gives_every_rank_the_heads_words() -> None:
    def join(end: End) -> list[int]:
        return end.broadcast(WORD, [7] if end.rank == 0 else None)

    assert on_ranks(Rendezvous(3), [join] * 3) == [[7]] * 3


def test_an_all_reduce_gives_every_rank_the_same_sum() -> None:
    def join(end: End) -> list[float]:
        total: list[float] = end.all_reduce(SUM, np.full(4, 10.0**end.rank)).tolist()
        return total

    assert on_ranks(Rendezvous(3), [join] * 3) == [[111.0] * 4] * 3


def test_a_collective_begins_when_the_last_rank_joins_and_all_clocks_go_on_from_its_end() -> None:
    def join(end: End) -> int:
        end.broadcast(WORD, [7] if end.rank == 0 else None)
        return end._clock.now_ns()

    assert on_ranks(Rendezvous(3, latency_ns=5), [join] * 3) == [2005] * 3


def test_ranks_in_another_order_deadlock_and_are_told_what_faces_what() -> None:
    def head(end: End) -> None:
        end.broadcast(WORD, [2])
        end.broadcast(WORD, [3])

    def worker(end: End) -> None:
        end.broadcast(WORD, None)
        end.all_reduce(SUM, np.zeros(4))

    one, other = on_ranks(Rendezvous(2), [head, worker])

    assert isinstance(one, Disconnected)
    assert (
        str(one)
        == str(other)
        == (
            "deadlock: at operation 1 broadcast of 1 uint32 (slot, slot 2) on rank 0 faces "
            "all-reduce of 4 float64 (decode, slot 0) on rank 1; "
            "rank 0: [0] B(slot 2) >B(slot 2)<; rank 1: [0] B(slot 2) >AR(decode 0)<"
        )
    )


def test_ranks_that_disagree_about_a_size_deadlock() -> None:
    def join(end: End) -> None:
        size = 4 + end.rank
        end.all_reduce(Operation(ALL_REDUCE, "float64", size), np.zeros(size))

    first, second = on_ranks(Rendezvous(2), [join] * 2)
    assert "all-reduce of 4 float64 on rank 0 faces all-reduce of 5 float64" in str(first)
    assert str(first) == str(second)


def test_who_waits_for_a_rank_that_has_left_is_told_why_it_did() -> None:
    def head(end: End) -> None:
        end.broadcast(WORD, [2])

    one, _ = on_ranks(Rendezvous(2), [head, lambda end: end.leave("it refused")])

    assert str(one) == (
        "rank 1 has left: it refused; "
        "rank 0 waits in operation 0, broadcast of 1 uint32 (slot, slot 2)"
    )


def test_a_place_that_is_broken_stays_so() -> None:
    place = Rendezvous(2)
    place.leave(1, "it refused")

    for _ in range(2):
        with pytest.raises(Disconnected, match="rank 1 has left"):
            place.join(0, WORD, [1], 0)


def test_a_link_numbers_and_records_what_it_carries() -> None:
    rows = [Rows(), Rows()]

    def join(end: End) -> None:
        link = Link(end, end._clock, rows[end.rank].recorder)
        link.command, link.slot = "decode", 1
        link.all_reduce(np.ones((2, 4)))
        link.all_reduce(np.ones(3, np.float32))

    on_ranks(Rendezvous(2, latency_ns=5), [join] * 2)

    for rank, dur_ns in ((0, 1005), (1, 5)):
        first, second = rows[rank].of("collectives")
        assert first | {"step": 0} == first
        assert (first["ordinal"], first["op"], first["dtype"]) == (0, "all-reduce", "float64")
        assert (first["num_elements"], first["num_bytes"]) == (8, 64)
        assert (first["group"], first["expected_ranks"]) == ("ep", "0,1")
        assert (first["command"], first["slot"], first["dur_ns"]) == ("decode", 1, dur_ns)
        assert (second["ordinal"], second["num_bytes"], second["dur_ns"]) == (1, 12, 5)


def test_a_collective_that_never_ends_is_recorded_without_a_length() -> None:
    rows = [Rows(), Rows()]

    def head(end: End) -> None:
        Link(end, end._clock, rows[0].recorder).send([1], "slot", 1)

    def worker(end: End) -> None:
        Link(end, end._clock, rows[1].recorder).all_reduce(np.zeros(4))

    on_ranks(Rendezvous(2), [head, worker])

    assert [row["dur_ns"] for each in rows for row in each.of("collectives")] == [None, None]
    assert [each.of("collectives")[0]["op"] for each in rows] == ["broadcast", "all-reduce"]


def test_alone_in_the_world_a_link_issues_nothing() -> None:
    rows, clock = Rows(), VirtualClock()
    link = Link(Rendezvous(1).end(0, clock), clock, rows.recorder)
    link.send([1], "slot", 1)

    assert link.all_reduce(np.ones(4)).tolist() == [1.0] * 4
    assert len(rows.of("collectives")) == 0 == link.num_issued


def test_alone_in_the_world_a_link_that_does_not_ask_dies_without_a_communicator() -> None:
    rows, clock = Rows(), VirtualClock()
    link = Link(Rendezvous(1).end(0, clock), clock, rows.recorder, is_guarded=False)

    with pytest.raises(NoCommunicator, match="rank 0 died: ep_broadcast_u32 without comm"):
        link.send([1], "slot", 1)
    with pytest.raises(NoCommunicator, match="ep_all_reduce without comm"):
        link.all_reduce(np.ones(4))
    assert [row["dur_ns"] for row in rows.of("collectives")] == [None, None]


_operations = st.lists(
    st.builds(Operation, st.sampled_from([BROADCAST, ALL_REDUCE]), st.just("x"), st.integers(1, 2)),
    max_size=6,
)


@given(_operations, _operations)
def test_the_first_difference_is_behind_all_that_is_the_same(
    one: list[Operation], other: list[Operation]
) -> None:
    ordinal = first_difference({0: one, 1: other}, first_ordinal=10)

    if ordinal is None:
        assert one == other
    else:
        assert one[: ordinal - 10] == other[: ordinal - 10]
        assert one[ordinal - 10 : ordinal - 9] != other[ordinal - 10 : ordinal - 9]
        assert f"at operation {ordinal} " in explain({0: one, 1: other}, 10)
