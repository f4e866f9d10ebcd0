"""STV011: prefills run again and again while runnable decodes do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.rules.stv.stv011_decode_starved import DecodeStarved
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision, event
from tests.analyzers.serving_rows import decode, prefill, row
from tests.looped import looped
from tests.traces import trace_of


def starved(*steps: Row, lifecycle: list[Row] | None = None, **more: Any) -> list[Finding]:
    trace = trace_of(steps=steps, lifecycle=lifecycle or [], **more)
    return DecodeStarved(max_steps=4).check(trace)


def test_prompts_that_run_again_and_again_before_decodes_are_found() -> None:
    (found,) = starved(decode(1, 6), *(prefill(n, 90, 7) for n in range(2, 9)), decode(9, 7))

    assert found.message == (
        "7 steps running (2 to 8, 70 ns) ran prefills and no decode, "
        "with up to 6 requests ready to decode"
    )
    assert (found.step, found.end_ns, found.count) == (2, 90, 1)
    assert found.evidence["steps"] == 7


def test_a_policy_that_was_asked_for_is_a_warning_with_advice_that_fits_it() -> None:
    steps = [prefill(n, 90, 7) for n in range(1, 30)]
    told: list[dict[str, Any]] = [
        {},
        {"scheduler": {"mixed": True}},
        {"scheduler": {"mixed": False}},
        {"scheduler": {"mixed": False, "mtp_k": 1}, "engine": {"refuses_mixed_drafts": True}},
    ]

    found = [DecodeStarved().check(trace_of(steps=steps, config=config)) for config in told]

    assert [[each.severity for each in one] for one in found] == [
        ["error"], ["error"], ["warning"], ["warning"],
    ]  # fmt: skip
    assert "switch it on" in found[2][0].fix
    assert "mix both" not in found[3][0].fix
    assert "refuses to mix" in found[3][0].fix


@looped("variant", ["flag-off", "mtp"])
def test_an_engine_without_mixed_batches_is_told_once_and_nothing_that_it_refuses(
    record: Record, variant: str
) -> None:
    result = check(record("mixed-batches", variant, requests="24", max_tokens="32"))

    said = {each.code: (each.severity, each.count) for each in result.findings}
    assert said["STV011"] == ("warning", 1)
    assert "BAT001" in result.not_applicable
    assert not any(each.severity is Severity.ERROR for each in result.findings)


def test_buckets_that_hold_prompts_or_decodes_alone_are_what_was_asked_for(record: Record) -> None:
    (found,) = DecodeStarved().check(
        record("fcfs-preemption", burst="1", gap_ms="34", prompt_len="4", max_tokens="14")
    )

    assert (found.severity, found.evidence["longest run_steps"]) == (Severity.WARNING, 25)


def test_a_decode_in_between_ends_the_run() -> None:
    steps = [prefill(n, 90, 7) for n in (1, 2, 3, 5, 6, 7)]

    assert starved(*steps, decode(4, 7)) == []


def test_prompts_are_clean_while_nobody_could_decode() -> None:
    assert starved(*(prefill(n, 90, 1) for n in range(1, 9))) == []


def test_a_request_whose_last_token_is_under_way_could_not_decode() -> None:
    steps = [prefill(n, 90, 2) for n in range(1, 9)]
    life = [event("r0", "arrive", 0), event("r0", "admit", 1), event("r0", "first-token", 5)]
    told = decision("request", "r0", "deferred", 7, reason="its last token is under way")

    assert len(starved(*steps, lifecycle=life)) == 1
    assert starved(*steps, lifecycle=life, decisions=[told]) == []
    assert len(starved(*steps, lifecycle=life, decisions=[told | {"resource": "phase"}])) == 1


def test_a_first_token_that_came_when_the_batch_had_been_formed_is_not_left_out_of_it() -> None:
    steps = [prefill(n, 90, 2) for n in range(1, 9)]
    life = [event("r0", "arrive", 0), event("r0", "admit", 1), event("r0", "first-token", 25)]
    formed = [row(n, "r1", 90, ts_ns=10 * n - 40) for n in range(1, 9)]

    assert len(starved(*steps, lifecycle=life)) == 1
    assert starved(*steps, lifecycle=life, batch_rows=formed) == []


def test_requests_that_have_no_token_yet_could_not_decode() -> None:
    arrivals = [event(f"r{n}", "arrive", 0) for n in range(7)]
    first = event("r0", "first-token", 55)

    assert starved(*(prefill(n, 90, 7) for n in range(1, 9)), lifecycle=arrivals) == []
    assert starved(*(prefill(n, 90, 7) for n in range(1, 9)), lifecycle=[*arrivals, first]) == []
    assert (
        len(starved(*(prefill(n, 90, 7) for n in range(1, 12)), lifecycle=[*arrivals, first])) == 1
    )


def test_a_request_that_was_preempted_or_ended_could_not_decode() -> None:
    life = [event(name, what, 0) for name in "ab" for what in ("arrive", "first-token")]
    gone = [event("a", "preempt", 5), event("b", "finish", 5)]

    assert starved(*(prefill(n, 90, 7) for n in range(1, 9)), lifecycle=life + gone) == []
    assert len(starved(*(prefill(n, 90, 7) for n in range(1, 9)), lifecycle=life)) == 1


@looped(
    "name",
    [
        "vllm_cpu_tiny_llama_preemptions",
        "sglang_qwen3_8b_prefilldecode",
        "vllm_prefilldecode_mi300",
    ],
)
def test_tags_do_not_tell_how_many_run_so_nothing_is_said(shared_data: Path, name: str) -> None:
    trace = Trace.open(shared_data / "kineto" / f"{name}.json.gz")

    assert trace.has("steps")
    assert DecodeStarved(max_steps=0).check(trace) == []


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert DecodeStarved().check(record(scenario)) == []


def test_a_log_that_leaves_decodes_out_does_not_tell_whether_any_ran_in_between(
    tmp_path: Path,
) -> None:
    """A request arrives at every fifth decode, and one in forty of these has a line."""
    prompt = "Prefill batch, #new-seq: 1, #new-token: 200, #running-req: 20, #queue-req: 0, "
    decodes = "Decode batch, #running-req: 21, cuda graph: True, #queue-req: 0, "
    lines = [f"[2026-01-01 00:00:{n:02}] {prompt}" for n in range(20)]
    log = tmp_path / "server.log"
    log.write_text("\n".join([*lines, f"[2026-01-01 00:00:20] {decodes}"]) + "\n")

    assert check(Trace.open(log), (DecodeStarved(),)).not_applicable == ("STV011",)
