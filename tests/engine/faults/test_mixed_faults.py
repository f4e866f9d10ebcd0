"""What each fault of mixed batches does, and what is refused or costs more without one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepscope.engine.executors import ExecutionFailed
from stepscope.engine.scenarios.mixed_setups import COST
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.mixed_runs import MIXED, SMALL, faulty, rows_of, sound
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Rows
from tests.tiers import slow

SCHEDULED = [
    "prefill-eats-the-budget", "no-request-cap", "placeholder-read-as-token",
    "token-of-partial-prefill", "scheduled-twice",
]  # fmt: skip


@slow
def test_prefill_that_eats_the_budget_leaves_decodes_out(recorded_once: RecordedOnce) -> None:
    rows, before = (
        faulty(recorded_once, "prefill-eats-the-budget"),
        rows_of(recorded_once, "before"),
    )
    assert rows.tables == before.tables
    left_out = rows.of("decisions", resource="token-budget", needed=1)
    assert len({row["subject"] for row in left_out}) > 8


def test_without_a_cap_one_prompt_has_the_whole_budget(recorded_once: RecordedOnce) -> None:
    largest = [
        max(row["num_tokens"] for row in told.of("batch_rows"))
        for told in (
            faulty(recorded_once, "no-request-cap"),
            sound(recorded_once, "no-request-cap"),
        )
    ]
    assert largest == [256, 224]


def test_a_reserve_for_max_num_seqs_leaves_prompts_nothing(recorded_once: RecordedOnce) -> None:
    more = {"budget": "32"}
    rows = faulty(recorded_once, "reserve-for-max-num-seqs", more)
    starving = [row for row in rows.of("steps") if row["reserved_tokens"] >= row["token_budget"]]
    assert len(starving) > 100
    assert all(row["num_prefill_reqs"] == 0 for row in starving)
    assert any(row["num_waiting"] for row in starving)
    plain = sound(recorded_once, "reserve-for-max-num-seqs", more)
    assert all(row["reserved_tokens"] < 32 for row in plain.of("steps"))


def test_a_reserve_that_is_not_held_is_spent_on_prompts(recorded_once: RecordedOnce) -> None:
    taken = [
        [
            row["num_prefill_tokens"] > row["token_budget"] - row["reserved_tokens"]
            for row in told.of("steps")
            if row["reserved_tokens"]
        ]
        for told in (
            faulty(recorded_once, "reserve-not-held"),
            sound(recorded_once, "reserve-not-held"),
        )
    ]
    assert [any(each) for each in taken] == [True, False]


def test_a_decode_that_idled_reads_the_placeholder(recorded_once: RecordedOnce) -> None:
    read = [
        Counter((row["stream"], row["epoch"] == 0) for row in told.of("accesses", op="read")
                if row["buffer"] == "input_ids" and row["stream"] in {"host", "device"})
        for told in (
            faulty(recorded_once, "placeholder-read-as-token"),
            sound(recorded_once, "placeholder-read-as-token"),
        )
    ]  # fmt: skip
    assert read[0]["host", True] == read[1]["host", False] > 0
    assert read[0]["host", False] == read[1]["host", True] == 0
    assert read[0]["device", False] == read[1]["device", False] > 0


def test_a_partial_prefill_gives_tokens(recorded_once: RecordedOnce) -> None:
    def leaked(rows: Rows) -> int:
        partial = {
            (row["request"], row["step"]) for row in rows.of("batch_rows", is_final_chunk=False)
        }
        return sum((row["request"], row["source_step"]) in partial for row in rows.of("outputs"))

    assert leaked(faulty(recorded_once, "token-of-partial-prefill")) > 16
    assert leaked(sound(recorded_once, "token-of-partial-prefill")) == 0


def test_a_request_is_in_a_batch_twice(recorded_once: RecordedOnce) -> None:
    def most(rows: Rows) -> int:
        return max(Counter((row["step"], row["request"]) for row in rows.of("batch_rows")).values())

    rows = faulty(recorded_once, "scheduled-twice")
    assert most(rows) == 2
    assert most(sound(recorded_once, "scheduled-twice")) == 1
    assert len(rows.of("lifecycle", event="finish")) == 16


@slow
def test_a_victim_is_in_the_batch_that_it_was_thrown_out_of(recorded_once: RecordedOnce) -> None:
    def evicted(rows: Rows) -> set[tuple[int, str]]:
        scheduled = {(row["step"], row["request"]) for row in rows.of("batch_rows")}
        gone = {(row["step"], row["request"]) for row in rows.of("lifecycle", event="preempt")}
        return scheduled & gone

    tight = {"kv_blocks": "510", "block_size": "4"}
    assert evicted(faulty(recorded_once, "victim-in-batch", tight))
    plain = sound(recorded_once, "victim-in-batch", tight)
    assert plain.of("lifecycle", event="preempt")
    assert not evicted(plain)


def test_mtp_with_mixed_batches_is_refused_and_runs_with_the_fault(
    recorded_once: RecordedOnce,
) -> None:
    with pytest.raises(ConfigError, match="MTP does not work with mixed batches"):
        MIXED.record("after", None, asked({**SMALL, "mtp_k": "1"}))
    rows = faulty(recorded_once, "mtp-with-mixed")
    assert {row["executed_path"] for row in rows.of("steps", kind="mixed")} == {
        "simulated-mixed+mtp"
    }


def test_a_backend_that_takes_no_mixed_batches_runs_the_others(tmp_path: Path) -> None:
    with pytest.raises(ExecutionFailed, match=r"^step 4, .*the mha backend takes no mixed batches"):
        MIXED.record("after", tmp_path / "mha", asked({**SMALL, "backend": "mha"}))
    steps = Rows.read(Trace.open(tmp_path / "mha")).of("steps")
    assert [row["kind"] for row in steps] == ["prefill", "prefill", "prefill", "mixed"]
    assert [row["dur_ns"] is None for row in steps] == [False, False, False, True]
    assert (
        MIXED.record("flag-off", None, asked({**SMALL, "backend": "mha"})).metrics["mixed_steps"]
        == 0
    )


def test_a_mixed_step_costs_a_second_body_and_a_synchronisation(
    recorded_once: RecordedOnce,
) -> None:
    def took(settings: dict[str, str]) -> list[int]:
        return [
            row["dur_ns"]
            for row in rows_of(recorded_once, "after", settings).of("steps", kind="mixed")
        ]

    twice, once, unsynced = (
        took({}),
        took({"backend": "mla"}),
        took({"fault": "pinned-buffer-overwritten"}),
    )
    assert {more - less for more, less in zip(twice, once, strict=True)} == {COST.body_ns}
    assert {more - less for more, less in zip(twice, unsynced, strict=True)} == {COST.sync_ns}


def test_two_batch_overlap_runs_batches_of_one_phase_in_halves_and_mixed_ones_whole(
    recorded_once: RecordedOnce,
) -> None:
    rows = rows_of(recorded_once, "after", {"tbo": "true"})

    assert {
        (row["kind"], row["executed_path"])
        for row in rows.of("steps")
        if row["num_prefill_reqs"] > 1 or row["num_decode_reqs"] > 1
    } == {
        ("prefill", "simulated-prefill+tbo"),
        ("mixed", "simulated-mixed"),
        ("decode", "simulated-decode+tbo"),
    }


def test_mtp_with_deferred_output_is_refused() -> None:
    with pytest.raises(ConfigError, match="MTP does not work with deferred output"):
        MIXED.record("mtp", None, asked({**SMALL, "deferred": "true"}))


def test_every_fault_of_scheduling_changes_the_trace(recorded_once: RecordedOnce) -> None:
    unchanged = [
        name
        for name in SCHEDULED
        if faulty(recorded_once, name).tables == sound(recorded_once, name).tables
    ]

    assert unchanged == []


def test_every_row_is_read_as_the_schema_says(recorded_once: RecordedOnce) -> None:
    told: list[dict[str, Any]] = rows_of(recorded_once, "deferred").of("outputs")
    assert {row["is_placeholder"] for row in told} == {True, False}
