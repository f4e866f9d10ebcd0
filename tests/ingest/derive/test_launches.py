"""What a GPU executed belongs to the step that launched it."""

from __future__ import annotations

import itertools
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.gpu_times import derived_steps
from tests.ingest.derive.test_steps import spans
from tests.looped import looped
from tests.tiers import slow

STEP_1 = ("decode[bs=2]", 0, 10)
STEP_2 = ("decode[bs=3]", 10, 10)
GPU = "gpu_user_annotation"
Row = tuple[Any, ...]


def launch(ts_ns: int, correlation: int, track: str = "main") -> Row:
    return ("launch", ts_ns, 1, "cuda_runtime", track, correlation)


def kernel(ts_ns: int, dur_ns: int, correlation: int | None, track: str = "stream 7") -> Row:
    return ("kernel", ts_ns, dur_ns, "kernel", track, correlation)


def times(*rows: Row) -> list[Row]:
    """Of each step: ts_ns, dur_ns, cpu_dur_ns, gpu_ts_ns, gpu_dur_ns, gpu_busy_ns."""
    steps, _, _ = derived_steps(spans(*rows))
    names = ("ts_ns", "dur_ns", "cpu_dur_ns", "gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns")
    return steps.select(names).rows()


def owners(*rows: Row) -> list[int | None]:
    """The steps of the kernels, in the order of the rows."""
    _, tagged, _ = derived_steps(spans(*rows))
    return tagged.filter(pl.col("name") == "kernel")["step"].to_list()


def notes(*rows: Row) -> list[str]:
    return list(derived_steps(spans(*rows))[2])


def test_a_step_lasts_until_the_last_of_its_kernels_has_ended() -> None:
    found = times(STEP_1, launch(2, 9), launch(4, 8), kernel(5, 3, 9), kernel(20, 10, 8))

    assert found == [(0, 30, 10, 5, 25, 13)]


def test_kernels_on_several_streams_are_busy_once() -> None:
    found = times(STEP_1, launch(2, 9), launch(4, 8), kernel(5, 10, 9), kernel(6, 4, 8, "stream 8"))

    assert found == [(0, 15, 10, 5, 10, 10)]


def test_of_a_step_that_launched_nothing_the_gpu_is_unknown_and_not_zero() -> None:
    found = times(STEP_1, STEP_2, launch(12, 9), kernel(15, 1, 9))

    assert found[0] == (0, 10, 10, None, None, None)


def test_a_step_without_an_end_has_no_length_whatever_it_launched() -> None:
    found = times(("decode[bs=2]", 0, None), launch(2, 9), kernel(5, 3, 9))

    assert found == [(0, None, None, 5, 3, 3)]


def test_all_kernels_of_a_graph_are_of_the_step_that_launched_it() -> None:
    graph = [kernel(20 + at, 1, 9, f"stream {at % 2}") for at in range(4)]

    assert owners(STEP_1, launch(2, 9), *graph) == [1, 1, 1, 1]


def test_a_kernel_that_runs_during_the_next_step_is_of_the_one_that_launched_it() -> None:
    assert owners(STEP_1, STEP_2, launch(2, 9), kernel(12, 3, 9)) == [1]


@looped("category", ["Kernel", "gpu_memcpy", "Memset", "kernel_dispatch"])
def test_copies_and_old_spellings_are_the_gpus_too(category: str) -> None:
    ran = ("copy", 12, 3, category, "stream 7", 9)

    assert times(STEP_1, launch(2, 9), ran) == [(0, 15, 10, 12, 3, 3)]


def test_a_thread_without_tags_launches_for_the_step_under_way() -> None:
    rows = (STEP_1, STEP_2, launch(12, 9, "autograd"), kernel(30, 3, 9))

    assert owners(*rows) == [2]
    assert notes(*rows) == ["threads without tags: 1 of their calls count to the step under way"]


def test_a_thread_without_tags_launches_for_nobody_where_two_steps_are_under_way() -> None:
    other = ("decode[bs=4]", 5, 10, "user_annotation", "other engine")

    assert owners(STEP_1, other, launch(7, 9, "autograd"), kernel(30, 3, 9)) == [None]


def test_a_thread_with_tags_launches_for_none_but_its_own_steps() -> None:
    other = ("decode[bs=4]", 40, 10, "user_annotation", "other engine")

    assert owners(STEP_1, other, launch(7, 9, "other engine"), kernel(30, 3, 9)) == [None]


def test_where_a_launch_is_lost_the_gpus_copy_of_the_tag_tells() -> None:
    copies = [("decode[bs=2]", 20, 10, GPU, "stream 7"), ("decode[bs=3]", 30, 9, GPU, "stream 7")]

    found = owners(
        STEP_1, STEP_2, *copies, kernel(21, 1, None), kernel(31, 1, 5), kernel(45, 1, None)
    )

    assert found == [1, 2, None]


def test_the_nth_copy_of_a_tag_is_of_the_nth_step_so_called() -> None:
    steps = [("decode[bs=2]", 10 * at, 10) for at in range(3)]
    copies = [("decode[bs=2]", 50 + 10 * at, 10, GPU, "stream 7") for at in range(3)]

    assert owners(*steps, *copies, *(kernel(51 + 10 * at, 1, None) for at in range(3))) == [1, 2, 3]


def test_copies_of_which_one_is_missing_tell_nothing() -> None:
    steps = [("decode[bs=2]", 10 * at, 10) for at in range(3)]
    copies = [("decode[bs=2]", 50 + 10 * at, 10, GPU, "stream 7") for at in range(2)]

    assert owners(*steps, *copies, kernel(51, 1, None)) == [None]


def test_what_was_launched_between_steps_is_of_none_even_within_a_copy() -> None:
    gap = ("decode[bs=3]", 30, 10)
    copy = ("decode[bs=2]", 40, 10, GPU, "stream 7")

    assert owners(STEP_1, gap, copy, launch(20, 9), kernel(41, 1, 9)) == [None]


def test_a_correlation_of_two_processes_ties_a_kernel_to_neither() -> None:
    other = ("decode[bs=4]", 5, 10, "user_annotation", "other rank")

    rows = (STEP_1, other, launch(2, 9), launch(7, 9, "other rank"), kernel(30, 3, 9))

    assert owners(*rows) == [None]
    assert notes(*rows) == [
        "1 of 1 kernels and copies belong to no step: no step alone launched them"
    ]


def test_kernels_of_no_step_are_counted_by_why() -> None:
    rows = (STEP_1, launch(2, 9), kernel(5, 1, 9), launch(20, 8), kernel(25, 1, 8))

    assert notes(*rows, kernel(1, 1, None), kernel(2, 1, 77)) == [
        "2 of 4 kernels and copies belong to no step: nothing says what launched them",
        "1 of 4 kernels and copies belong to no step: no step alone launched them",
    ]


def test_a_profile_of_the_cpu_alone_says_so() -> None:
    assert notes(STEP_1) == ["no kernel is in the file: steps are as long as the CPU was in them"]


def test_a_profile_without_steps_says_nothing_of_them() -> None:
    assert not notes(launch(2, 9), kernel(5, 1, 9))


def test_steps_that_only_the_device_tells_of_have_no_time_on_the_cpu() -> None:
    found = times(("decode[bs=2]", 0, 10, GPU, "stream 7"), kernel(2, 5, None))

    assert found == [(0, 10, None, 2, 5, 5)]


ran = st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 20), st.integers(0, 2))


@slow
@given(st.lists(ran, max_size=12))
def test_steps_have_what_they_launched_and_nothing_else(launched: list[tuple[int, ...]]) -> None:
    steps = [(f"decode[bs={at + 1}]", 10 * at, 10) for at in range(3)]
    calls = [launch(10 * step, at) for at, (step, *_) in enumerate(launched)]
    kernels = [
        kernel(begun, dur, at, f"stream {stream}")
        for at, (_, begun, dur, stream) in enumerate(launched)
    ]

    found = times(*steps, *calls, *kernels)

    for number, row in enumerate(found):
        own = [(begun, begun + dur) for step, begun, dur, _ in launched if step == number]
        if not own:
            assert row[3:] == (None, None, None)
            continue
        first, last = min(begun for begun, _ in own), max(end for _, end in own)
        moments = set(itertools.chain(*(range(begun, end) for begun, end in own)))
        assert row == (10 * number, max(10, last - 10 * number), 10, first, last - first,
                       len(moments))  # fmt: skip
