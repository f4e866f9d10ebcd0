"""What is said to have come of two runs, and what cannot be compared."""

from __future__ import annotations

from stepscope.analyzers.diff.compare import Difference, diff
from stepscope.analyzers.diff.outcomes import outcomes, totals
from stepscope.app.present.diff_text import causes_table
from tests.analyzers.rows import event
from tests.tiers import slow
from tests.traces import trace_of


def test_traces_without_a_table_in_common_cannot_be_compared() -> None:
    ours = trace_of(steps=[{"step": 1, "kind": "decode"}])
    theirs = trace_of(lifecycle=[event("r", "arrive", 0)])

    found = diff(ours, theirs)

    assert found.verdict == "incomparable"
    assert set(found.not_compared) == {"batch sizes", "moves", "ends", "arrivals"}


def test_runs_that_did_nothing_are_not_said_to_do_the_same() -> None:
    assert diff(trace_of(steps=[], lifecycle=[]), trace_of(steps=[])).verdict == "incomparable"


def test_what_neither_recorded_is_not_compared() -> None:
    spans = [{"step": 1, "kind": None, "ts_ns": 0, "dur_ns": 5}]

    found = diff(trace_of(steps=spans), trace_of(steps=spans))

    assert found.verdict == "incomparable"
    assert found.firsts == {}


def test_requests_are_counted_by_what_became_of_them() -> None:
    rows = [
        *(event(name, "arrive", 0) for name in "abcde"), event("a", "finish", 9),
        event("b", "abort", 5), event("c", "reject", 3), event("d", "admit", 1),
        event("d", "preempt", 2),
    ]  # fmt: skip

    totals = diff(trace_of(lifecycle=rows), trace_of(lifecycle=rows)).outcomes.totals

    counted = {name: totals[name][0] for name in ("requests", "arrived", "finished", "aborted",
               "rejected", "open", "preemptions")}  # fmt: skip
    assert list(counted.values()) == [5, 5, 1, 1, 1, 2, 1]


def test_what_became_of_requests_is_unknown_where_only_arrivals_are_listed() -> None:
    listed = trace_of(lifecycle=[event("a", "arrive", 0), event("b", "arrive", 1)])

    totals = diff(listed, trace_of(steps=[{"step": 1, "kind": "decode"}])).outcomes.totals

    assert totals["arrived"] == (2, None)
    assert totals["requests"] == (2, None)
    assert {
        totals[name] for name in ("finished", "aborted", "rejected", "open", "preemptions")
    } == {(None, None)}


def test_preemptions_that_name_nobody_are_counted_and_ends_are_not_made_up() -> None:
    log = trace_of(lifecycle=[{"request": None, "event": "preempt", "ts_ns": n} for n in range(5)])

    totals = diff(log, log).outcomes.totals

    assert totals["preemptions"] == (5, 5)
    assert totals["finished"] == (None, None)


@slow
def test_where_a_run_names_no_requests_their_time_is_not_known_to_be_none() -> None:
    named = trace_of(
        steps=[{"step": 1, "ts_ns": 5, "dur_ns": 10, "kind": "prefill"}],
        lifecycle=[{"request": "r", "event": event, "ts_ns": at}
                   for event, at in (("arrive", 0), ("admit", 5), ("finish", 15))],
        batch_rows=[{"step": 1, "ts_ns": 5, "request": "r", "phase": "prefill", "num_tokens": 1}],
    )  # fmt: skip
    unnamed = trace_of(steps=[{"step": 1, "ts_ns": 5, "dur_ns": 10, "kind": "prefill"}])

    causes = outcomes(named, unnamed).causes

    assert causes["prefill"] == (10, None)
    assert outcomes(unnamed, named).causes["prefill"] == (None, 10)
    told = plain_table(diff(named, unnamed))
    assert "not recorded" in told
    assert " 0 ns" not in told


def plain_table(found: Difference) -> str:
    table = causes_table(found)
    assert table is not None
    return "\n".join(" ".join(map(str, row)) for row in table.rows)


def test_an_end_without_a_time_is_counted_and_has_no_latency() -> None:
    life = [event("r", "arrive", 0), event("r", "admit", 1), event("r", "finish", 9)]
    assert totals(trace_of(lifecycle=life))["finished"] == 1

    came = totals(trace_of(lifecycle=[*life[:2], life[2] | {"ts_ns": None}]))

    assert (came["arrived"], came["finished"], came["open"]) == (1, 1, 0)
    assert came.get("latency_mean_ns") is None


def test_tokens_of_a_run_without_outputs_are_known_where_each_request_has_its_number() -> None:
    def served(name: str, **end: int) -> list[dict[str, object]]:
        return [event(name, "arrive", 0), event(name, "admit", 1), event(name, "finish", 9, **end)]

    whole = trace_of(lifecycle=[*served("a", num_generated=3), *served("b", num_generated=4)])
    in_part = trace_of(lifecycle=[*served("a", num_generated=3), *served("b")])

    assert totals(whole)["tokens"] == 7
    assert totals(in_part)["tokens"] is None
