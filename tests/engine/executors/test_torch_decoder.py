"""The executor `torch`: whatever is scheduled, every output is that of its request alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors import ExecutionFailed
from stepscope.engine.executors.decoding.model_runner import ModelRunner
from stepscope.engine.executors.decoding.torch_decoder import TorchDecoder
from stepscope.engine.executors.segments.split import Split
from stepscope.engine.executors.segments.staging import CopyQueue
from stepscope.engine.model.decoder_config import ModelConfig
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import RequestSpec, Workload
from tests.engine.decoding import COMPRESSED, CONFIGS, DENSE
from tests.engine.executors.drawing import Drawn
from tests.engine.rows import Row, Rows
from tests.engine.small_engines import request
from tests.tiers import examples, slow

SMALL = EngineConfig(
    num_kv_blocks=40, block_size=4, max_num_batched_tokens=64, max_num_seqs=4
)  # fmt: skip
LONG = [request(f"req-{i}", 6, 40) for i in range(3)]
STAGGERED = [request(f"req-{i:02d}", 9 + 5 * i % 13, 4 + 3 * i % 7) for i in range(6)]


def served(
    requests: list[RequestSpec],
    scheduler: Scheduler,
    config: EngineConfig = SMALL,
    model: ModelConfig = DENSE,
    *faults: str,
    queue: CopyQueue | None = None,
) -> tuple[Engine, ModelRunner, Rows]:
    """Run an engine on a decoder; the faults are the executor's."""
    rows, found = Rows(), frozenset(faults)
    runner = ModelRunner(model, found)
    executor = TorchDecoder(runner, config.num_kv_blocks, config.block_size, Split(found, queue))
    engine = Engine(config, Workload(requests), scheduler, executor, VirtualClock(), rows.recorder)
    engine.run()
    return engine, runner, rows


def num_equal(engine: Engine, runner: ModelRunner) -> int:
    return runner.num_equal_to_solo(each.request for each in engine.ended)


def wrong_tokens(rows: Rows) -> list[Row]:
    """Tokens whose logits are not those of the request alone."""
    known = rows.of("outputs", is_placeholder=False)
    return [row for row in known if row["digest"] != row["solo_digest"]]


lengths = st.lists(st.tuples(st.integers(1, 14), st.integers(1, 6)), min_size=1, max_size=6)
prefixes = st.sampled_from([(), (7,), (8,)])


@slow
@given(lengths, prefixes, st.sampled_from(CONFIGS), st.integers(0, 999), st.integers(0, 3))
@settings(max_examples=examples(25))
def test_outputs_are_those_of_the_requests_alone_whatever_is_drawn(
    sizes: list[tuple[int, int]],
    prefix: tuple[int, ...],
    model: ModelConfig,
    seed: int,
    width: int,
) -> None:
    requests = [
        request(f"req-{i:02d}", *each, prefix=prefix) for i, each in enumerate(sizes)
    ]  # fmt: skip
    engine, runner, rows = served(requests, Drawn(seed, width), model=model)

    assert num_equal(engine, runner) == len(requests)
    assert wrong_tokens(rows) == []


@slow
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 6)), min_size=1, max_size=8),
    prefixes,
    st.sampled_from(CONFIGS),
    st.sampled_from(["mixed", "deferred", "prefills-first", "mtp"]),
    st.integers(6, 20),
    st.integers(0, 9),
)
@settings(max_examples=examples(30))
def test_outputs_of_the_paged_scheduler_are_those_of_the_requests_alone(
    sizes: list[tuple[int, int]],
    prefix: tuple[int, ...],
    model: ModelConfig,
    way: str,
    num_blocks: int,
    threshold: int,
) -> None:
    requests = [request(f"r{i}", *each, prefix=prefix) for i, each in enumerate(sizes)]
    scheduler = Paged(
        mixed=way in {"mixed", "deferred"},
        long_prefill_threshold=threshold,
        mtp_k=2 * (way == "mtp"),
    )
    config = EngineConfig(
        num_kv_blocks=num_blocks, block_size=4, max_num_batched_tokens=16, max_num_seqs=4,
        deferred_output=way == "deferred", prefix_cache=True,
    )  # fmt: skip
    engine, runner, rows = served(requests, scheduler, config, model)

    finished = [each.request for each in engine.ended if each.event == "finish"]
    assert len(finished) + len(rows.of("lifecycle", event="reject")) == len(requests)
    assert runner.num_equal_to_solo(finished) == len(finished)
    assert wrong_tokens(rows) == []


def test_a_shared_prefix_is_computed_once_and_its_kv_is_right() -> None:
    requests = [request(f"r{i}", 17, 4, i * 10**9, prefix=(7,)) for i in range(3)]
    config = EngineConfig(
        num_kv_blocks=40, block_size=4, max_num_batched_tokens=64, max_num_seqs=4,
        prefix_cache=True,
    )  # fmt: skip
    engine, runner, rows = served(requests, Paged(), config)

    assert len(rows.of("allocations", op="share")) == 8
    assert num_equal(engine, runner) == 3


@slow
def test_drafts_are_accepted_and_change_nothing() -> None:
    engine, runner, rows = served(LONG, Paged(mixed=False, mtp_k=3))

    assert num_equal(engine, runner) == len(LONG)
    num_decode_rows = len(rows.of("batch_rows", phase="decode"))
    assert len(rows.of("outputs")) > len(LONG) + num_decode_rows


def test_a_placeholder_read_as_a_token_changes_what_follows() -> None:
    tight = EngineConfig(
        num_kv_blocks=40, block_size=4, max_num_batched_tokens=8, max_num_seqs=4,
        deferred_output=True, faults=frozenset({"placeholder-read-as-token"}),
    )  # fmt: skip
    engine, runner, rows = served(STAGGERED, Paged(reserve=False), tight)

    assert num_equal(engine, runner) < len(STAGGERED)
    assert wrong_tokens(rows)


@slow
def test_preempted_requests_go_on_as_if_nothing_had_happened() -> None:
    tight = EngineConfig(num_kv_blocks=8, block_size=4, max_num_batched_tokens=64, max_num_seqs=4)
    engine, runner, _ = served(STAGGERED, Bucketed(), tight)

    assert sum(each.request.num_preemptions for each in engine.ended) > 0
    assert num_equal(engine, runner) == len(STAGGERED)


def test_an_output_ends_where_its_workload_says() -> None:
    engine, runner, rows = served([request("a", 5, 8, eos_after=3)], Bucketed())

    assert len(runner.streams.outputs["a"]) == 3
    assert rows.of("lifecycle", event="finish")[0]["cause"] == "eos"
    assert num_equal(engine, runner) == 1


@slow
def test_the_greedy_token_is_never_a_matter_of_rounding() -> None:
    engine, runner, _ = served(STAGGERED, Drawn(1))

    assert min(runner.solo(each.request).margin for each in engine.ended) > 1e-6


@slow
def test_segments_paths_and_logits_rows_of_every_step_are_recorded() -> None:
    _, _, rows = served(STAGGERED, Drawn(3))

    kinds = {step["kind"] for step in rows.of("steps")}
    assert kinds >= {"prefill", "decode", "mixed"}
    for step in rows.of("steps"):
        segments = rows.of("segments", step=step["step"])
        assert step["executed_path"] == f"torch-{step['kind']}"
        assert len(segments) == 1 + (step["kind"] == "mixed")
        assert step["logits_rows"] == len(rows.of("outputs", step=step["step"]))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("lengths-not-rebased", "step [0-9]+, mixed: the model failed: "),
        ("input-ids-not-sliced", "step [0-9]+, mixed: the model failed: "),
        ("slot-mapping-missing", "the decode segment has no slot_mapping"),
        ("lengths-missing", "the prefill segment has no cu_seqlens_q"),
        ("decode-overwrites-shared-view", "step [0-9]+, mixed: the model failed: "),
    ],
)
def test_metadata_that_do_not_fit_end_the_run_in_one_line(fault: str, message: str) -> None:
    with pytest.raises(ExecutionFailed, match=message) as failed:
        served(STAGGERED, Drawn(3), SMALL, DENSE, fault)

    assert "\n" not in str(failed.value)


@slow
@pytest.mark.parametrize("fault", ["decode-region-stale", "logits-per-token", "logits-per-batch"])
def test_a_fault_of_the_split_changes_tokens(fault: str) -> None:
    engine, runner, _ = served(STAGGERED, Drawn(3), SMALL, DENSE, fault)

    assert num_equal(engine, runner) < len(STAGGERED)


@slow
def test_the_prefill_path_gives_a_mixed_batch_the_same_tokens() -> None:
    engine, runner, rows = served(STAGGERED, Drawn(3), SMALL, DENSE, "mixed-taken-for-prefill")

    assert num_equal(engine, runner) == len(STAGGERED)
    assert {step["executed_path"] for step in rows.of("steps", kind="mixed")} == {"torch-prefill"}


@pytest.mark.parametrize(("turnaround_ns", "is_hidden"), [(10_000, True), (10, False)])
def test_a_pinned_buffer_that_is_written_too_early_changes_tokens_if_the_copy_is_late(
    turnaround_ns: int, *, is_hidden: bool
) -> None:
    queue = CopyQueue(turnaround_ns=turnaround_ns)
    engine, runner, _ = served(
        STAGGERED, Drawn(3), SMALL, DENSE, "pinned-buffer-overwritten", queue=queue
    )

    assert (num_equal(engine, runner) == len(STAGGERED)) == is_hidden


@slow
def test_merging_nothing_with_nothing_makes_outputs_that_are_no_numbers() -> None:
    runs = [
        served(STAGGERED, Drawn(3), SMALL, DENSE, *faults) for faults in ([], ["empty-merge-nan"])
    ]
    sound, faulty = (num_equal(engine, runner) for engine, runner, _ in runs)

    assert sound == len(STAGGERED)
    assert faulty < sound
    assert [bool(rows.of("outputs", digest="nan")) for _, _, rows in runs] == [False, True]


@slow
def test_history_seen_by_chunk_end_changes_what_chunks_say() -> None:
    engine, runner, _ = served(STAGGERED, Drawn(3), SMALL, COMPRESSED, "history-seen-by-chunk-end")

    assert num_equal(engine, runner) < len(STAGGERED)
