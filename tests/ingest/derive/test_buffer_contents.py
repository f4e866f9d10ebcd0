"""What buffers held from when to when, and what was overwritten while somebody needed it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.ingest.derive.buffer_contents import BufferContents, buffer_contents
from tests.analyzers.rank_rows import access, ordered
from tests.traces import trace_of

SEGMENTS = [{"step": 1, "ts_ns": 0, "segment": at, "phase": "prefill", "num_rows": 1,
             "num_tokens": 1} for at in range(2)]  # fmt: skip


def contents(*rows: Any, **more: Any) -> BufferContents:
    trace = trace_of(accesses=rows, segments=SEGMENTS)
    return buffer_contents(trace.accesses, trace.segments, **more)


def spans(*rows: Any, **more: Any) -> list[tuple[int, int]]:
    return contents(*rows, **more).contents.select("from_ns", "to_ns").rows()


def lost(*rows: Any, **more: Any) -> list[tuple[int, int, int, int]]:
    found = contents(*rows, **more).contents.drop_nulls("lost_from_ns")
    return found.select("ref", "lost_from_ns", "lost_to_ns", "overwrite_ref").rows()


WRITE = access("host", "write", 10, epoch=1)


def test_contents_last_from_the_write_to_their_last_read() -> None:
    reads = [access("host", "read", at, epoch=1) for at in (20, 30)]

    assert spans(WRITE, *reads, access("host", "write", 40, epoch=2)) == [(10, 30), (40, 40)]


def test_a_read_without_an_epoch_found_the_last_write_before_it() -> None:
    rows = [access("host", op, at) for at, op in enumerate(("write", "read", "write", "read"))]

    assert spans(*rows) == [(0, 1), (2, 3)]


def test_a_read_of_contents_that_nobody_wrote_belongs_to_none() -> None:
    assert spans(WRITE, access("host", "read", 20, epoch=7)) == [(10, 10)]
    assert spans(WRITE, access("host", "read", 20, first=8, last=9)) == [(10, 10)]


def test_a_write_of_the_host_that_did_not_wait_for_a_copy_overwrites_what_that_reads() -> None:
    raced = [WRITE, access("copy", "copy", 20, epoch=1), access("host", "write", 50, epoch=2)]

    assert lost(*raced) == [(0, 20, 50, 2)]
    assert spans(*raced)[0] == (10, 20)
    assert lost(*raced, has_times=False) == []


def test_a_host_that_waited_for_the_copy_overwrites_nothing() -> None:
    copy = access("copy", "copy", 20, epoch=1)

    assert lost(WRITE, copy, *ordered("copy", "host", 30), access("host", "write", 50)) == []


def test_a_segment_that_read_what_another_one_wrote_since_had_its_contents_overwritten() -> None:
    own, other = (access("copy", "write", 10 + 20 * at, segment=at, epoch=at) for at in range(2))
    late = access("copy", "read", 70, segment=0, epoch=1)

    assert lost(own, other, late) == [(0, 30, 70, 1)]
    assert contents(own, other, late).reads.rows() == [(2, 0, 1)]


def test_a_copy_that_reads_late_contents_whose_write_is_not_recorded_stands_for_them() -> None:
    copy, write = access("copy", "copy", 20), access("host", "write", 50)

    assert lost(copy, write) == [(0, 20, 50, 1)]


def test_no_accesses_are_no_contents() -> None:
    assert spans() == []


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "write", "copy"]), st.sampled_from("ab"), st.integers(0, 2),
            st.integers(1, 2), st.none() | st.integers(0, 2),
        ),
        max_size=12,
    )
)  # fmt: skip
def test_whose_contents_a_read_found_is_what_a_search_through_all_writes_finds(
    rows: list[tuple[str, str, int, int, int | None]],
) -> None:
    given_rows = [
        access("host", op, at, buffer, first=first, last=first + size, epoch=epoch)
        for at, (op, buffer, first, size, epoch) in enumerate(rows)
    ]

    found = contents(*given_rows).reads

    assert dict(found.select("ref", "write_ref").iter_rows()) == {
        at: searched(rows, at) for at, (op, *_) in enumerate(rows) if op != "write"
    }


def searched(rows: list[tuple[str, str, int, int, int | None]], at: int) -> int | None:
    _, buffer, first, size, epoch = rows[at]
    writes = [place for place in range(at) if rows[place][:2] == ("write", buffer)][::-1]

    def last(of: list[int], *, by_epoch: bool) -> int | None:
        if not of:
            return None
        _, _, other, other_size, written = rows[of[0]]
        overlaps = first < other + other_size and other < first + size
        is_told = epoch is not None and written is not None
        return of[0] if overlaps and (by_epoch or not is_told) else None

    of_epoch = [place for place in writes if rows[place][4] == epoch] if epoch is not None else []
    for places, by_epoch in ((of_epoch, True), (writes, False)):
        same_place = [place for place in places if rows[place][2] == first]
        for some in (same_place, places):
            if (place := last(some, by_epoch=by_epoch)) is not None:
                return place
    return None
