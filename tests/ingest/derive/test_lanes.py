"""Lanes in which slices nest, and the slice that encloses each."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.lanes import with_lanes
from stepscope.ingest.derive.nesting import NUM_NESTING_LANES
from tests.tiers import slow

Slice = tuple[str, int, int | None]
END_NS = (pl.col("ts_ns") + pl.col("dur_ns").clip(lower_bound=1)).alias("end_ns")
SLICES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(-20, 20), st.integers(0, 15) | st.none())
)


def placed(*slices: Slice, form: str = "slice") -> pl.DataFrame:
    """Spans of (track, start, duration) in lanes."""
    schema = {"track": pl.String, "ts_ns": pl.Int64, "dur_ns": pl.Int64}
    frame = pl.DataFrame(list(slices), schema=schema, orient="row")
    return with_lanes(frame.with_columns(pl.lit(form).alias("form")))


def test_nested_slices_stay_on_their_track_and_know_their_parents() -> None:
    spans = placed(("a", 0, 10), ("a", 1, 4), ("a", 2, 1), ("a", 5, 5), ("b", 3, 1))

    assert spans["track"].to_list() == ["a", "a", "a", "a", "b"]
    assert spans["parent"].to_list() == [None, 0, 1, 0, None]


def test_a_slice_that_overlaps_in_part_gets_a_lane() -> None:
    spans = placed(("a", 0, 10), ("a", 5, 10), ("a", 12, 2), ("a", 16, 2))

    assert spans["track"].to_list() == ["a", "a #2", "a", "a"]


def test_lanes_do_not_take_the_names_of_other_tracks() -> None:
    spans = placed(("a", 0, 10), ("a", 5, 10), ("a #2", 7, 10))

    assert set(spans["track"]) == {"a", "a #2", "a #3"}


def test_slices_that_meet_do_not_nest() -> None:
    spans = placed(("a", 0, 10), ("a", 10, 0), ("a", 10, 10))

    assert spans["parent"].to_list() == [None, 2, None]


def test_equal_slices_nest_in_the_order_given() -> None:
    spans = placed(("a", 0, 10), ("a", 0, 10))

    assert spans["parent"].to_list() == [None, 0]


def test_a_slice_without_end_lies_in_none_that_ends() -> None:
    spans = placed(("a", 0, 9), ("a", 3, None))

    assert spans["parent"].to_list() == [None, None]


def test_a_slice_without_end_lasts_to_the_end() -> None:
    spans = placed(("a", 0, 5), ("a", 6, None), ("a", 8, 4), ("b", 90, 10))

    assert spans["parent"].to_list()[:3] == [None, None, 1]


def test_instants_need_no_lane_and_enclose_nothing() -> None:
    spans = placed(("a", 5, None), ("a", 5, None), form="instant")

    assert spans["track"].to_list() == ["a", "a"]
    assert spans["parent"].null_count() == 2


def test_many_crossing_slices_spread_over_as_many_lanes_as_they_need() -> None:
    num = 3 * NUM_NESTING_LANES

    spans = placed(*(("a", start, num) for start in range(2 * num)))

    assert spans["track"].n_unique() == num


@given(SLICES)
def test_in_every_lane_slices_nest_and_the_parent_is_the_innermost_around(
    slices: list[Slice],
) -> None:
    spans = placed(*slices)
    end = max([ts + max(dur or 0, 1) for _, ts, dur in slices], default=0) + 1

    assert spans["span"].to_list() == list(range(len(slices)))
    for _, lane in spans.with_columns(END_NS.fill_null(end)).group_by("track"):
        opened: list[tuple[int, int]] = []
        outer_first = lane.sort("ts_ns", -pl.col("end_ns"), "span")
        columns = ("span", "ts_ns", "end_ns", "parent")
        for span, ts, ends, parent in outer_first.select(columns).rows():
            while opened and opened[-1][1] <= ts:
                opened.pop()
            assert not opened or opened[-1][1] >= ends
            assert parent == (opened[-1][0] if opened else None)
            opened.append((span, ends))


@slow
@given(SLICES.flatmap(lambda slices: st.tuples(st.just(slices), st.permutations(slices))))
def test_the_order_of_the_rows_does_not_matter(both: tuple[list[Slice], list[Slice]]) -> None:
    slices, shuffled = both

    spans, others = placed(*slices), placed(*shuffled)

    assert spans.select("ts_ns", "dur_ns").rows() == [tuple(times) for _, *times in slices]
    assert chains(spans) == chains(others)


def chains(spans: pl.DataFrame) -> list[list[object]]:
    """Lane and times of each slice and of those around it."""
    said = spans.select("track", "ts_ns", END_NS).rows()
    parents = spans["parent"].to_list()

    def outward(span: int | None) -> list[object]:
        return [] if span is None else [said[span], *outward(parents[span])]

    return sorted(map(outward, range(len(spans))), key=str)


def test_identical_slices_nest_in_another_order_than_that_of_the_rows_where_one_is_given() -> None:
    frame = pl.DataFrame(
        {"track": ["t"] * 3, "ts_ns": [5] * 3, "dur_ns": [9] * 3, "form": ["slice"] * 3}
    )

    laned = with_lanes(frame, pl.Series([1, 2, 0]))

    assert laned["parent"].to_list() == [2, 0, None]
