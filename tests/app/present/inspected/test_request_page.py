"""A request's page tells its life in order, every wait with its reason, its tokens."""

from __future__ import annotations

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.summary.slo import slo_of
from stepscope.app.present.blocks import AtChange, AtRequest, Block, Links, Table
from stepscope.app.present.inspected.request_page import NOT_THERE, request_blocks
from stepscope.app.present.plain_text import lines
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import decision, event
from tests.analyzers.summary.every_trace import opened
from tests.traces import trace_of


def page(trace: Trace, request: str, slo: str | None = None) -> list[Block]:
    asked = slo_of(slo) if slo else None
    return list(request_blocks(trace, blame(trace), (0, request), 0, asked))


def text(trace: Trace, request: str, slo: str | None = None) -> str:
    return "\n".join(lines(page(trace, request, slo), 14))


def test_every_wait_has_its_recorded_reason_and_holder_which_leads_to_its_page() -> None:
    trace = opened("sample_traces/fcfs-preemption-before.trace")

    said = text(trace, "req-30")

    assert "every wait" in said
    assert "kv-block needs 2, 0 available, held by req-00" in said
    (links,) = (each for each in page(trace, "req-30") if isinstance(each, Links))
    assert links.choices[0].to == AtRequest(0, "req-00")


def test_preemptions_and_what_was_computed_again_are_counted() -> None:
    trace = opened("sample_traces/fcfs-preemption-before.trace")
    again = trace.sql(
        "select count(distinct step) as steps, sum(num_tokens) as tokens from batch_rows"
        " where request = 'req-01' and is_recompute"
    ).row(0)
    times = trace.sql(
        "select count(*) from lifecycle where request = 'req-01' and event = 'preempt'"
    ).item()

    said = text(trace, "req-01")

    assert again[0] == 1
    assert f"recomputed     {again[1]:,} tokens in 1 step\n" in said
    assert f"preempted      {times:,} times" in said


def test_one_of_a_thing_is_said_as_one() -> None:
    said = text(opened("sample_traces/fcfs-preemption-before.trace"), "req-00")

    assert "preempted      1 time\n" in said
    assert "1 times" not in said
    assert " 1 tokens" not in said


def test_each_moment_leads_to_the_change_where_changes_are_counted() -> None:
    trace = opened("sample_traces/fcfs-preemption-before.trace")

    *_, life = page(trace, "req-30")

    assert isinstance(life, Table)
    assert life.title == "its life, in the order of its changes"
    assert life.leads
    assert all(isinstance(each, AtChange) for each in life.leads)


def test_the_slo_is_that_of_the_request_alone() -> None:
    trace = opened("sample_traces/fcfs-preemption-before.trace")

    assert "ttft   500 ms  5.30 s  missed" in text(trace, "req-30", "ttft=500ms,tpot=50ms")


def test_what_was_not_recorded_is_not_known() -> None:
    said = text(trace_of(lifecycle=[event("r", "arrive", 0), event("r", "admit", 5)]), "r")

    assert "no first token was recorded" in said
    assert "prompt not known, generated not known" in said
    assert "still there when the trace ended" in said


def test_of_a_request_that_is_not_there_it_says_so() -> None:
    assert NOT_THERE in text(trace_of(lifecycle=[event("r", "arrive", 0)]), "other")


def test_text_of_the_trace_steers_no_terminal() -> None:
    evil = "\x1b[31mevil\n"
    trace = trace_of(
        lifecycle=[event(evil, "arrive", 0, cause=evil), event(evil, "finish", 9)],
        decisions=[decision("request", evil, "deferred", 3, reason=evil, holder=evil)],
    )

    said = text(trace, evil)

    assert "evil" in said
    assert "\x1b" not in said


def test_the_first_token_of_the_engine_is_told_beside_that_of_a_client_who_got_it_later() -> None:
    trace = opened("sample_traces/vllm_crowd.trace")

    said = text(trace, "0-974a4f6a")

    assert "TTFT           client 69.4 ms; engine 18.4 ms" in said
    assert "TPOT           client not known: all tokens came at once; engine 2.68 ms" in said


def test_of_a_request_that_did_not_finish_no_time_per_token_is_known() -> None:
    came = [event("r", "arrive", 0), event("r", "first-token", 5_000), event("r", "abort", 9_000)]

    said = text(trace_of(lifecycle=came), "r")

    assert "TTFT           5.00 µs" in said
    assert "TPOT           not known: it did not finish" in said
