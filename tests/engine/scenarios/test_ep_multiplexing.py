"""The scenario `ep-multiplexing` on virtual time: what each variant shows."""

from __future__ import annotations

from itertools import product

import pytest

from stepscope.ingest.errors import ConfigError
from tests.engine.asked import asked
from tests.engine.ep_runs import (
    SCENARIO,
    operations,
    overlapping_scratch,
    read_of_others,
    recorded,
    run,
    served,
    unordered,
)
from tests.engine.recorded_once import RecordedOnce
from tests.tiers import slow

WIDTHS = [("before", "4"), ("after", "3"), ("after", "2"), ("after", "4")]
TOGETHER = [
    *product(("before", "after", "v2-device-staging"), (2, 4, 8)),
    ("v2-host-staging", 4), ("v2-grouped-gemm", 4), ("v2-grouped-attention", 4),
]  # fmt: skip


@slow
@pytest.mark.parametrize(
    ("variant", "num_requests"),
    [case if case[1] == 4 else pytest.param(*case, marks=slow) for case in TOGETHER],
)  # fmt: skip
def test_distinct_prompts_together_each_get_what_they_get_alone(
    variant: str, num_requests: int
) -> None:
    metrics = served(variant, requests=str(num_requests), slots="8", max_tokens="5")

    assert metrics["equal_to_solo"] == f"{num_requests}/{num_requests}"
    assert metrics["decode_rows"] == (1 if variant == "before" else num_requests)


@slow
def test_requests_with_prompts_of_their_own_get_answers_of_their_own(
    recorded_once: RecordedOnce,
) -> None:
    first = recorded(recorded_once, "after").of("outputs", position=0)

    assert len({row["digest"] for row in first}) == len(first) == 4


def test_four_queue_up_for_four_slots() -> None:
    metrics = served("after", requests="8")

    assert metrics["equal_to_solo"] == "8/8"
    assert metrics["decode_rows"] == 4


def test_under_v1_the_last_of_four_waits_for_the_other_three_to_end(
    recorded_once: RecordedOnce,
) -> None:
    rows = recorded(recorded_once, "before")

    told = [row["request"] for row in rows.of("lifecycle", event="finish")]
    (last,) = rows.of("lifecycle", event="first-token", request="req-03")
    third = rows.of("lifecycle", event="finish", request="req-02")[0]
    assert told == ["req-00", "req-01", "req-02", "req-03"]
    assert third["ts_ns"] < last["ts_ns"]
    assert max(row["num_running"] for row in rows.of("steps", rank=0)) == 1


def test_under_v2_nobody_waits_for_anybody_to_end(recorded_once: RecordedOnce) -> None:
    rows = recorded(recorded_once, "after")

    first = [row["ts_ns"] for row in rows.of("lifecycle", event="first-token")]
    ends = [row["ts_ns"] for row in rows.of("lifecycle", event="finish")]
    assert max(first) < min(ends)
    assert served("after")["ttft_max_s"] < served("before")["ttft_max_s"]  # type: ignore[operator]  # both are numbers


LONG = {"long_tokens": "600", "max_tokens": "40", "client_timeout_s": "10"}


@pytest.mark.parametrize(
    ("variant", "late", "earliest_s", "latest_s"),
    [("before", 3, 20.2, 23.4), ("after", 0, 6.2, 6.3)],
)
def test_short_requests_behind_a_long_one_wait_for_it_under_v1_alone(
    recorded_once: RecordedOnce, variant: str, late: int, earliest_s: float, latest_s: float
) -> None:
    metrics, rows = run(recorded_once, variant, **LONG)

    ends_s = {row["request"]: row["ts_ns"] / 1e9 for row in rows.of("lifecycle", event="finish")}
    short_s = [ends_s[f"req-{i:02d}"] for i in (1, 2, 3)]
    assert metrics["late"] == late
    assert min(short_s) == pytest.approx(earliest_s, abs=0.06)
    assert max(short_s) == pytest.approx(latest_s, abs=0.06)
    assert metrics["tail_s"] == round(max(short_s), 3)


def test_without_a_long_one_the_tail_is_of_all_and_nobody_is_late() -> None:
    metrics = served("before")

    assert metrics["tail_s"] == metrics["makespan_s"]
    assert metrics["late"] == 0


def test_where_nobody_finishes_there_is_no_tail() -> None:
    assert "tail_s" not in served("after", slot_tokens="1")


def test_a_batched_decode_is_said_in_five_broadcasts(recorded_once: RecordedOnce) -> None:
    rows = recorded(recorded_once, "after")

    said = rows.of("collectives", rank=1, op="broadcast", command="decode-batch")
    at = said[0]["ordinal"]
    words = [row for row in rows.of("collectives", rank=1) if at - 1 <= row["ordinal"] <= at + 3]
    assert [(row["command"], row["num_elements"]) for row in words] == [
        ("slot", 1), ("decode-batch", 1), ("decode-batch: rows", 1),
        ("decode-batch: slots", 4), ("decode-batch: tokens", 4),
    ]  # fmt: skip


@slow
def test_the_ranks_operations_are_the_same_one_by_one(recorded_once: RecordedOnce) -> None:
    for variant in SCENARIO.variants:
        rows = recorded(recorded_once, variant)

        head, worker = (operations(rows, rank) for rank in (0, 1))
        ordinals = [row["ordinal"] for row in rows.of("collectives", rank=1)]
        assert head == worker, variant
        assert ordinals == list(range(len(worker))), variant
        assert all(row["dur_ns"] is not None for row in rows.of("collectives")), variant


def test_whoever_samples_reads_what_was_written_for_it_and_waited_for(
    recorded_once: RecordedOnce,
) -> None:
    for variant in SCENARIO.variants:
        rows = recorded(recorded_once, variant)

        assert read_of_others(rows) == [], variant
        assert unordered(rows) == [], variant
        assert overlapping_scratch(rows) == [], variant


def test_more_ranks_share_the_experts_and_say_the_same() -> None:
    assert served("after", ranks="4")["equal_to_solo"] == "4/4"


@slow
@pytest.mark.parametrize(
    ("variant", "width"), [*WIDTHS[:2], *(pytest.param(*width, marks=slow) for width in WIDTHS[2:])]
)
def test_guesses_that_are_verified_change_no_token(
    recorded_once: RecordedOnce, variant: str, width: str
) -> None:
    metrics, rows = run(recorded_once, variant, verify_width=width, max_tokens="16")

    assert metrics["equal_to_solo"] == "4/4"
    kept = rows.of("collectives", rank=0, command=f"verify-{width}: verdict")
    assert rows.of(
        "collectives", rank=1, command=f"verify-{width}: tokens", num_elements=int(width)
    )
    assert len(kept) < 4 * 14


def test_every_rank_says_which_version_it_speaks(recorded_once: RecordedOnce) -> None:
    for variant, version in (("before", 1.0), ("after", 2.0)):
        told = recorded(recorded_once, variant).of("counters", name="protocol version")
        assert [(row["rank"], row["value"]) for row in told] == [(0, version), (1, version)]


def test_another_codebook_serves_as_well() -> None:
    codebook = "decode-batch=0xFFFFFF10,prefill=0xFFFFFF20,shutdown=0xFFFFFF30"
    assert served("after", codebook=codebook)["equal_to_solo"] == "4/4"


def test_a_setting_that_makes_no_sense_is_refused() -> None:
    for settings in (
        {"ranks": "0"},
        {"verify_width": "5"},
        {"codebook": "prefill=3"},
        {"fault": "x"},
    ):
        with pytest.raises(ConfigError):
            SCENARIO.record("after", None, asked(settings))


def test_a_request_longer_than_a_slot_is_rejected_and_the_others_are_served() -> None:
    metrics = served("after", slot_tokens="26", prompt_len="16")

    assert (metrics["finished"], metrics["outcome"]) == (4, "served")
    assert served("after", slot_tokens="24")["finished"] == 2
