"""Each fault of split execution: what it changes in the trace of `mixed-batches`, and no more."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stepscope.engine.faults import SPLIT_FAULTS, fault
from stepscope.engine.scenarios.mixed_batches import MixedBatches
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.rows import Row, Rows
from tests.tiers import slow

SCENARIO = MixedBatches()
SMALL = {"requests": "6", "max_tokens": "6"}
CHANGED = {
    "decode-overwrites-shared-view": {"accesses"},
    "pinned-buffer-overwritten": {"accesses"},
    "plans-not-cloned": {"accesses"},
    "decode-region-stale": {"accesses"},
    "lengths-stale": {"accesses"},
    "lengths-missing": {"segments", "accesses"},
    "lengths-not-rebased": {"segments"},
    "input-ids-not-sliced": {"segments", "accesses"},
    "slot-mapping-missing": {"segments", "accesses"},
    "logits-per-token": {"steps"},
    "logits-per-batch": {"steps"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("split"))


@cache
def recorded(folder: str, name: str = "none", **settings: str) -> Rows:
    path = Path(folder) / "-".join((name, *settings.values()))
    SCENARIO.record("after", path, asked({**SMALL, **settings, "fault": name}))
    return Rows.read(Trace.open(path))


def _of_mixed(rows: Rows, table: str) -> list[Row]:
    mixed = {step["step"] for step in rows.of("steps", kind="mixed")}
    return [row for row in rows.of(table) if row["step"] in mixed]


def test_every_fault_that_runs_on_costs_is_looked_at() -> None:
    priced = {each.name for each in SPLIT_FAULTS if not each.executor}
    assert priced == {*CHANGED, "mixed-taken-for-prefill"}


@slow
@pytest.mark.parametrize("name", CHANGED)
def test_a_fault_changes_what_it_says_and_nothing_else(folder: str, name: str) -> None:
    settings = fault(name).settings.get("window", "0")
    sound, faulty = recorded(folder, window=settings), recorded(folder, name, window=settings)

    changed = {
        table for table in sound.tables if _timeless(sound, table) != _timeless(faulty, table)
    }
    assert changed == CHANGED[name]
    assert sound.tables.keys() == faulty.tables.keys()


def _timeless(rows: Rows, table: str) -> list[Row]:
    """Rows without their times: a host that does not wait is faster, too."""
    return [{**row, "ts_ns": 0, "dur_ns": 0} for row in rows.of(table)]


def test_a_mixed_batch_taken_for_a_prefill_gives_its_decodes_no_token(folder: str) -> None:
    rows = recorded(folder, "mixed-taken-for-prefill")
    mixed = {step["step"] for step in rows.of("steps", kind="mixed")}
    decodes = [row for row in rows.of("batch_rows", phase="decode") if row["step"] in mixed]

    given = {(row["step"], row["request"]) for row in rows.of("outputs")}
    assert decodes
    assert not {(row["step"], row["request"]) for row in decodes} & given
    assert len(rows.of("lifecycle", event="finish")) == 6


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("lengths-not-rebased", "first_cu_len", 0),
        ("slot-mapping-missing", "slot_mapping_len", None),
    ],
)
def test_a_decode_segment_is_wrong_in_every_mixed_step(
    folder: str, name: str, column: str, value: int | None
) -> None:
    for row in recorded(folder, name).of("segments", segment=1):
        assert (row[column] == value) == (value is None)


def test_logits_rows_are_those_of_the_sequences_without_a_fault(folder: str) -> None:
    for faults in ((), ("logits-per-token",), ("logits-per-batch",)):
        rows = recorded(folder, *faults)
        steps = _of_mixed(rows, "steps")
        assert steps
        expected = [len(rows.of("outputs", step=step["step"])) for step in steps]
        assert ([step["logits_rows"] for step in steps] == expected) == (not faults)


def test_the_wrong_test_of_the_kind_runs_mixed_steps_as_prefills(folder: str) -> None:
    steps = _of_mixed(recorded(folder, "mixed-taken-for-prefill"), "steps")

    assert {step["executed_path"] for step in steps} == {"simulated-prefill"}
    assert {step["executed_path"] for step in _of_mixed(recorded(folder), "steps")} == {
        "simulated-mixed"
    }


def _reads_of_another(rows: Rows) -> list[Row]:
    """Reads by the prefill segment of what was written for the decode segment."""
    written = {
        (row["step"], row["epoch"]): row["segment"]
        for row in rows.of("accesses", op="write", stream="host")
    }
    return [
        row
        for row in rows.of("accesses", op="read", segment=0)
        if written[row["step"], row["epoch"]] == 1
    ]


def test_the_prefill_segment_reads_what_was_written_for_the_decode_segment(folder: str) -> None:
    assert _reads_of_another(recorded(folder)) == []
    assert _reads_of_another(recorded(folder, "decode-overwrites-shared-view"))


@slow
def test_a_pinned_buffer_that_is_written_too_early_shows_behind_long_chunks_alone(
    folder: str,
) -> None:
    name = "pinned-buffer-overwritten"

    assert _reads_of_another(recorded(folder, name, budget="1024")) == []
    assert _reads_of_another(recorded(folder, name))
    assert recorded(folder, name, budget="1024").of("accesses") != (
        recorded(folder, budget="1024").of("accesses")
    )


def test_faults_of_the_attention_ask_for_the_decoder() -> None:
    assert fault("empty-merge-nan").executor == "torch"
    assert fault("history-seen-by-chunk-end").executor == "torch"
