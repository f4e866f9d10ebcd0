"""STV018: requests that could decode are left out for another bucket, step after step."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv018_decode_in_buckets import DecodeInBuckets
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, decision
from tests.looped import looped
from tests.traces import trace_of

STEPS = 10


def step(number: int, num_rows: int, num_running: int, kind: str = "decode") -> Row:
    """A step of so many rows, of decodes or of prompts."""
    is_decode = kind == "decode"
    return {
        "step": number, "ts_ns": 10 * number, "dur_ns": 10, "kind": kind,
        "num_prefill_reqs": 0 if is_decode else num_rows, "num_running": num_running,
        "num_decode_reqs": num_rows if is_decode else 0,
    }  # fmt: skip


def row(number: int, request: str, num_computed: int) -> Row:
    """A decode of a request that has computed so much."""
    return {
        "step": number, "ts_ns": 10 * number, "request": request, "phase": "decode",
        "num_tokens": 1, "num_computed": num_computed,
    }  # fmt: skip


def weighed(number: int) -> Row:
    """Two buckets compete in a step."""
    return decision("bucket", "len=9", "chosen", 10 * number) | {"step": number}


def found(steps: list[Row], rows: list[Row], decisions: list[Row]) -> list[Finding]:
    trace = trace_of(steps=steps, batch_rows=rows, decisions=decisions)
    return list(check(trace, (DecodeInBuckets(),)).findings)


def turns(num_left_out: int, num_steps: int = STEPS) -> list[Row]:
    """Steps in the first of which two requests run and one is in the batch, and then both."""
    return [step(each, 1 if each <= num_left_out else 2, 2) for each in range(1, num_steps + 1)]


ROWS = [row(each, "old", each) for each in range(1, STEPS + 1)]
COMPETE = [weighed(each) for each in range(1, STEPS + 1)]


def test_decodes_that_are_left_out_of_step_after_step_are_found() -> None:
    (one,) = found(turns(9), ROWS, COMPETE)

    assert (one.step, one.ts_ns, one.end_ns, one.count) == (1, 10, 100, 9)
    assert one.message == (
        "in 9 of 10 steps of decodes somebody was left out for another bucket: 9 of 20 turns, up "
        "to 1 in a step, first in step 1"
    )


def test_a_few_such_steps_are_clean() -> None:
    assert found(turns(7), ROWS, COMPETE) == []


def test_a_small_share_of_all_turns_is_clean() -> None:
    many = [step(each, 19 if each < 10 else 20, 20) for each in range(1, STEPS + 1)]
    assert found(many, ROWS, COMPETE) == []


def test_who_is_left_out_where_no_buckets_compete_lacks_something_else() -> None:
    assert found(turns(9), ROWS, COMPETE[:5]) == []


def test_an_engine_that_decodes_two_lengths_together_does_not_keep_lengths_apart() -> None:
    assert found(turns(9), [*ROWS, row(10, "young", 3)], COMPETE) == []


def test_prompts_that_run_first_are_another_matter() -> None:
    prompts = [step(each, 1, 2, "prefill") for each in range(1, STEPS + 1)]
    assert found(prompts, ROWS, COMPETE) == []


def test_it_does_not_apply_where_no_buckets_compete() -> None:
    result = check(trace_of(steps=turns(9), batch_rows=ROWS), (DecodeInBuckets(),))

    assert result.not_applicable == ("STV018",)


BURSTS = {
    "burst": "16", "gap_ms": "4000", "prompt_len": "64", "num_kv_blocks": "120", "block_size": "32",
}  # fmt: skip


def test_completions_in_buckets_are_found(record: Callable[..., Trace]) -> None:
    (one,) = DecodeInBuckets().check(
        record("fcfs-preemption", fault="completions-in-buckets", **BURSTS)
    )

    assert one.message.startswith("in 100 of 297 steps of decodes somebody was left out ")


@looped("settings", [{}, BURSTS, {"images": "every-4"}], ids=str)
def test_jagged_completions_are_clean_also_where_images_are_kept_apart(
    record: Callable[..., Trace], settings: dict[str, str]
) -> None:
    assert DecodeInBuckets().check(record("fcfs-preemption", **settings)) == []


@looped("requests", ["6", "8", "12", "20"])
def test_buckets_that_modalities_keep_apart_are_clean_at_any_number_of_requests(
    record: Callable[..., Trace], requests: str
) -> None:
    trace = record("fcfs-preemption", images="every-4", requests=requests)

    assert DecodeInBuckets().check(trace) == []


def test_deferring_alone_leaves_completions_in_their_buckets(
    record: Callable[..., Trace],
) -> None:
    assert DecodeInBuckets().check(record("fcfs-preemption", "defer-only"))
