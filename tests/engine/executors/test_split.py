"""Split execution: what each segment of a mixed batch is given, and what the host overwrites."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.engine.batch import DECODE, PREFILL
from stepscope.engine.executors.segments.split import TOKEN_FIELDS, split
from stepscope.engine.executors.segments.staging import CopyQueue
from tests.engine.executors.split_batches import CHUNK, LAST_CHUNK, TOKEN, batch, prepared, reads_of
from tests.engine.rows import Row, Rows

ALL_FIELDS = ("cu_seqlens_q", *TOKEN_FIELDS, "block_tables", "compress_plan_4")


def test_a_mixed_batch_becomes_a_prefill_and_a_decode_segment_each_from_zero() -> None:
    ready, rows = prepared()

    assert ready.path == "mixed"
    assert rows.of("segments") == [
        {"step": 7, "ts_ns": 100, "segment": 0, "phase": "prefill", "first_row": 0, "num_rows": 2,
         "num_tokens": 42, "first_cu_len": 0, "last_cu_len": 42, "executed_path": "prefill",
         "input_ids_len": 42, "positions_len": 42, "slot_mapping_len": 42},
        {"step": 7, "ts_ns": 100, "segment": 1, "phase": "decode", "first_row": 2, "num_rows": 3,
         "num_tokens": 3, "first_cu_len": 0, "last_cu_len": 3, "executed_path": "decode",
         "input_ids_len": 3, "positions_len": 3, "slot_mapping_len": 3},
    ]  # fmt: skip


def test_logits_are_for_the_last_token_of_each_ended_prefill_and_the_decode_rows() -> None:
    assert prepared()[0].logits_tokens == (41, 42, 43, 44)
    assert prepared(of=batch(CHUNK))[0].logits_tokens == ()


def test_drafts_have_logits_of_their_own() -> None:
    drafted = batch((DECODE, 3, True), (DECODE, 3, True), num_draft=2)

    assert prepared(of=drafted)[0].logits_tokens == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(("row", "path"), [(LAST_CHUNK, "prefill"), (TOKEN, "decode")])
def test_a_batch_of_one_phase_is_one_segment_and_shares_nothing(
    row: tuple[str, int, bool], path: str
) -> None:
    ready, rows = prepared(of=batch(row, row))

    assert (ready.path, len(ready.segments)) == (path, 1)
    assert rows.of("accesses") == []


@given(st.lists(st.integers(1, 9), max_size=5), st.integers(0, 5))
def test_segments_cover_the_batch_once(prompts: list[int], num_decodes: int) -> None:
    rows = [(PREFILL, num_tokens, True) for num_tokens in prompts] + [TOKEN] * num_decodes
    made = batch(*rows)

    segments = split(made)

    assert [row for each in segments for row in each.rows] == made.rows
    for name in TOKEN_FIELDS:
        tokens = [token for each in segments for token in each.fields[name] or ()]
        assert tokens == list(range(made.num_batched_tokens))
    for each in segments:
        assert each.cu_lens[0] == 0
        assert each.cu_lens[-1] == each.num_tokens


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        ("lengths-not-rebased", {"first_cu_len": 42, "last_cu_len": 45}),
        ("input-ids-not-sliced", {"input_ids_len": 45}),
        ("slot-mapping-missing", {"slot_mapping_len": None}),
    ],
)
def test_a_fault_of_the_metadata_changes_the_decode_segment_alone(fault: str, changed: Row) -> None:
    (prefill, decode), (sound_prefill, sound_decode) = (
        prepared(*faults)[1].of("segments") for faults in ([fault], [])
    )

    assert prefill == sound_prefill
    assert decode == {**sound_decode, **changed}


def test_lengths_that_are_missing_are_those_of_the_prompts_of_a_mixed_batch() -> None:
    (prefill, decode), (sound_prefill, sound_decode) = (
        prepared(*faults)[1].of("segments") for faults in (["lengths-missing"], [])
    )

    assert prefill == {**sound_prefill, "first_cu_len": None, "last_cu_len": None}
    assert decode == sound_decode
    alone = prepared("lengths-missing", of=batch(CHUNK, LAST_CHUNK))[1].of("segments")
    assert [each["last_cu_len"] for each in alone] == [42]


def test_mixed_taken_for_prefill_runs_the_whole_batch_as_one_and_gives_decodes_no_logits() -> None:
    ready, rows = prepared("mixed-taken-for-prefill")

    assert (ready.path, ready.logits_tokens) == ("prefill", (41,))
    assert [row.request.id for row in ready.sampling] == ["req-01"]
    (segment,) = rows.of("segments")
    assert (segment["phase"], segment["num_rows"], segment["num_tokens"]) == ("prefill", 5, 45)


@pytest.mark.parametrize(("fault", "tokens"), [("logits-per-token", 45), ("logits-per-batch", 1)])
def test_logits_faults_bite_on_mixed_batches_alone(fault: str, tokens: int) -> None:
    assert len(prepared(fault)[0].logits_tokens) == tokens
    assert len(prepared(fault, of=batch(TOKEN, TOKEN))[0].logits_tokens) == 2


def test_each_segment_reads_what_was_written_for_it() -> None:
    reads = list(reads_of(prepared(ratios=(4,))[1]))

    assert {(row["segment"], row["buffer"], row["epoch"]) for row in reads} == {
        *((0, f"cloned {name}", 1) for name in ALL_FIELDS),
        *((1, f"shared {name}", 2) for name in (*TOKEN_FIELDS, "cu_seqlens_q", "block_tables")),
    }


def test_without_a_clone_the_prefill_segment_reads_the_decode_segments_fields() -> None:
    reads = reads_of(prepared("decode-overwrites-shared-view")[1])

    assert [
        (row["first"], row["last"], row["epoch"])
        for row in reads
        if row["segment"] == 0 and row["buffer"] == "shared positions"
    ] == [(0, 3, 2), (3, 42, 1)]


def _unfenced(rows: Rows) -> Iterator[Row]:
    """Host writes to a pinned buffer with a copy from it that the host did not wait for."""
    in_flight: dict[str, str] = {}
    copied: list[str] = []
    for row in rows.of("accesses"):
        if row["op"] == "copy":
            copied.append(row["buffer"])
        elif row["op"] == "record" and row["stream"] == "compute":
            in_flight |= dict.fromkeys(copied, str(row["event"]))
        elif row["op"] == "wait" and row["stream"] == "host":
            in_flight = {buffer: on for buffer, on in in_flight.items() if on != row["event"]}
            copied.clear()
        elif row["op"] == "write" and row["stream"] == "host" and row["buffer"] in in_flight:
            yield row


@pytest.mark.parametrize("chunk", [256, 2048])
def test_the_host_waits_for_the_copies_before_it_writes_again(chunk: int) -> None:
    large = batch((PREFILL, chunk, False), *[TOKEN] * 114)

    assert list(_unfenced(prepared(of=large)[1])) == []
    assert list(_unfenced(prepared("pinned-buffer-overwritten", of=large)[1]))


def test_an_overwritten_pinned_buffer_is_hidden_for_short_chunks_and_fires_for_long_ones() -> None:
    arrived = {
        chunk: prepared(
            "pinned-buffer-overwritten", of=batch((PREFILL, chunk, False), *[TOKEN] * 114)
        )[0].staged[0].overwritten
        for chunk in (256, 1024, 1792, 2048)
    }  # fmt: skip

    assert arrived[256] == arrived[1024] == {}
    assert arrived[1792] == {"block_tables": range(4)}
    assert arrived[2048] == {"slot_mapping": range(114), "block_tables": range(4)}


@given(st.integers(0, 8192), st.integers(1, 4096), st.integers(1, 256), st.integers(0, 9000))
def test_a_queue_overwrites_only_what_was_not_copied_yet(
    num_ahead: int, num_queued: int, num_written: int, turnaround_ns: int
) -> None:
    overwritten = CopyQueue(8_000, turnaround_ns).overwritten(num_ahead, num_queued, num_written)

    # 8,000 bytes per us are a token per ns.
    late = [
        token for token in range(min(num_queued, num_written)) if num_ahead + token >= turnaround_ns
    ]
    assert list(overwritten) == late


def test_what_the_late_copy_took_is_what_the_segment_reads() -> None:
    large = batch((PREFILL, 2048, False), *[TOKEN] * 4)
    _, rows = prepared("pinned-buffer-overwritten", of=large)

    reads = [row for row in reads_of(rows) if row["buffer"] == "cloned slot_mapping"]
    assert [(row["first"], row["last"], row["epoch"]) for row in reads] == [(0, 4, 2), (4, 2048, 1)]


# ── backends and two-batch overlap ────────────────────────────────────────────────────────────────


# ── plans, and a region that nobody wrote ─────────────────────────────────────────────────────────
