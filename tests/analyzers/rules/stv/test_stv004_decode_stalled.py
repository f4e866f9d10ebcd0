"""STV004: the worst gap between two tokens of a request, blamed on the steps in between."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv004_decode_stalled import DecodeStalled
from stepscope.engine.faults.fcfs import BURSTS
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision, event
from tests.analyzers.serving_rows import decode, prefill, token
from tests.looped import looped
from tests.traces import trace_of

# Two requests get a token in steps 1 to 3; then prefills run until step 9.
STEPS = [*(decode(n, 2) for n in (1, 2, 3)), *(prefill(n, 64, 3) for n in range(4, 10))]
STEPS += [decode(n, 2) for n in (10, 11)]
TOKENS = [token(n, name, place) for name in "ab" for place, n in enumerate((1, 2, 3, 10, 11))]


def stalled(
    *tokens: Row, ratio: float = 5.0, lifecycle: list[Row] | None = None, **manifest: Any
) -> list[Finding]:
    trace = trace_of(steps=STEPS, outputs=tokens, lifecycle=lifecycle or [], **manifest)
    return DecodeStalled(max_ratio=ratio, min_gap_ns=50).check(trace)


def test_a_long_gap_is_found_and_blamed_on_the_steps_in_it() -> None:
    (found,) = stalled(*TOKENS)

    assert found.message == (
        "b and 1 other got no token for up to 70 ns (steps 4 to 10): 6 prefill steps took 60 ns, "
        "1 decode step took 10 ns"
    )
    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("b", 4, 40, 110)
    assert found.count == 2
    assert found.evidence["median_gap_ns"] == 10


@looped(("max_ratio", "min_gap_ns", "num_stalled"), [(6.9, 69, 1), (7, 69, 0), (6.9, 70, 0)])
def test_a_gap_that_is_just_as_long_as_is_allowed_is_clean(
    max_ratio: float, min_gap_ns: int, num_stalled: int
) -> None:
    rule = DecodeStalled(max_ratio=max_ratio, min_gap_ns=min_gap_ns)

    assert len(rule.check(trace_of(steps=STEPS, outputs=TOKENS))) == num_stalled


def test_what_is_to_be_done_goes_by_what_took_most_of_the_stall() -> None:
    left_out = [token(n, "c", place) for place, n in enumerate((1, 9))]
    others = [token(n, "d", n) for n in range(1, 11)]
    decodes = trace_of(steps=[decode(n, 2) for n in range(1, 11)], outputs=[*left_out, *others])
    out = [event("b", "arrive", 0), event("b", "preempt", 45), event("b", "resume", 95)]

    (behind_decodes,) = DecodeStalled(max_ratio=5, min_gap_ns=50).check(decodes)
    (behind_prompts,) = stalled(*TOKENS)
    (unmixed,) = stalled(*TOKENS, config={"scheduler": {"mixed": False}})
    (preempted,) = stalled(*TOKENS, lifecycle=out)

    assert behind_decodes.fix.startswith("let every request")
    assert behind_prompts.fix.startswith("hold back budget")
    assert unmixed.fix.startswith("run a decode step after some prefill steps")
    assert preempted.fix.startswith("choose victims by age")


def test_steps_without_durations_are_counted_and_not_said_to_have_taken_none() -> None:
    steps = [{**row, "dur_ns": None} for row in STEPS]

    (found,) = DecodeStalled(max_ratio=5, min_gap_ns=50).check(
        trace_of(steps=steps, outputs=TOKENS)
    )

    assert "6 prefill steps, 1 decode step" in found.message
    assert "took" not in found.message


def test_stalls_that_end_in_different_steps_are_different_findings() -> None:
    early = [token(n, "c", place) for place, n in enumerate((1, 9))]

    found = stalled(*TOKENS, *early)

    assert [(each.request, each.end_ns) for each in found] == [("c", 100), ("b", 110)]


def test_a_preemption_in_the_gap_is_told() -> None:
    lost = [event("b", "preempt", 50), event("b", "resume", 90), event("b", "preempt", 200)]

    (found,) = stalled(*TOKENS, lifecycle=[event("b", "arrive", 0), event("b", "admit", 5), *lost])

    assert found.message.endswith(
        ": preempted 1 time, b waited 40 ns to be resumed; meanwhile 6 prefill steps took 60 ns, "
        "1 decode step took 10 ns"
    )
    assert (found.evidence["times preempted"], found.evidence["preempted_ns"]) == (1, 40)


def test_a_preemption_before_the_last_token_of_what_was_under_way_is_told() -> None:
    lost = [event("b", "preempt", 35), event("b", "resume", 95)]

    (found,) = stalled(*TOKENS, lifecycle=[event("b", "arrive", 0), event("b", "admit", 5), *lost])

    assert (found.ts_ns, found.evidence["times preempted"]) == (40, 1)
    assert "preempted 1 time, b waited 55 ns to be resumed; meanwhile" in found.message


def test_a_preemption_that_was_over_before_the_gap_is_not_told() -> None:
    lost = [event("b", "preempt", 15), event("b", "resume", 25)]

    (found,) = stalled(*TOKENS, lifecycle=[event("b", "arrive", 0), event("b", "admit", 5), *lost])

    assert found.evidence["times preempted"] == 0


def test_steps_that_overlap_count_for_the_time_in_which_any_ran() -> None:
    steps = [decode(n, 2, dur_ns=25) for n in range(1, 12)]

    (found,) = DecodeStalled(max_ratio=5.0, min_gap_ns=50).check(
        trace_of(steps=steps, outputs=TOKENS)
    )

    assert found.message.endswith(": 7 decode steps took 70 ns")


def test_a_stall_of_a_second_is_found_where_tokens_come_fast() -> None:
    ms = 1_000_000
    times_ns = [17 * ms * n for n in range(100)]
    late = [17 * ms * 99 + 1_200 * ms, 17 * ms * 99 + 1_217 * ms]
    tokens = [token(n, "a", n, ts_ns=ts) for n, ts in enumerate([*times_ns, *late])]

    def found(*decisions: Row) -> list[Finding]:
        trace = trace_of(steps=[decode(1, 1)], outputs=tokens, decisions=decisions)
        return DecodeStalled().check(trace)

    (stall,) = found()
    assert stall.message.startswith("a got no token for 1.2 s")
    turn = decision("request", "a", "deferred", late[0] - 5, resource="bucket")
    assert found(turn) == []
    assert len(found(turn | {"ts_ns": 5})) == 1


def test_gaps_that_are_usual_are_clean() -> None:
    assert stalled(*TOKENS, ratio=10.0) == []


def test_placeholders_are_not_tokens() -> None:
    filled = [token(n, "b", 0, is_placeholder=True) for n in range(4, 10)]

    assert stalled(*TOKENS, *filled)[0].evidence["gap_ns"] == 70


def test_a_request_of_one_token_has_no_gap() -> None:
    assert stalled(token(1, "a", 0), token(11, "b", 0)) == []


@looped(
    ("variant", "settings"),
    [("defer-only", {}), ("defer-only", BURSTS)],
    ids=["shorter", "shorter-bursts"],
)
def test_requests_that_others_overtook_stalled(
    record: Record, variant: str, settings: dict[str, str]
) -> None:
    found = DecodeStalled().check(record("fcfs-preemption", variant, **settings))

    assert found
    assert max((each.end_ns or 0) - (each.ts_ns or 0) for each in found) > 2_000_000_000


def test_text_and_images_that_take_turns_do_not_stall(record: Record) -> None:
    assert DecodeStalled().check(record("fcfs-preemption", "after", images="every-4")) == []


@each_scenario
def test_sound_engines_do_not_stall(record: Record, scenario: str) -> None:
    assert DecodeStalled().check(record(scenario)) == []
