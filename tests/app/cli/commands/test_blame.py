"""`stepscope blame`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from stepscope.analyzers.latency.causes import CAUSES
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import decision, event
from tests.app.cli.conftest import Command
from tests.ingest.log_files import SGLANG
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

HOSTILE = "\x1b[31mevil\n=1+1"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace whose names would steer a terminal."""
    path = tmp_path_factory.mktemp("hostile") / "hostile.trace"
    save_trace(trace_of(
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "decode"}],
        lifecycle=[
            event(name, what, at)
            for name in (HOSTILE, "other")
            for what, at in (("arrive", 0), ("abort", 9))
        ],
        decisions=[
            decision("request", HOSTILE, "deferred", 0, reason=HOSTILE, resource="seat")
        ],
    ), path)  # fmt: skip
    return path


@slow
def test_blame_prints_causes_and_a_bar_for_each_of_the_slowest(
    stepscope: Command, starved: Path
) -> None:
    run = stepscope("blame", starved, "--limit", "5")

    assert run.code == 0
    assert "preempted" in run.out
    assert "waterfall of 5 of 40 requests, by latency" in run.out
    assert sum(line.startswith("req-") for line in run.out.splitlines()) == 5


@slow
def test_every_line_fits_a_terminal_of_80_columns(stepscope: Command, starved: Path) -> None:
    run = stepscope("blame", starved, "--limit", "0")

    assert max(map(len, run.out.splitlines())) <= 80


@slow
def test_blame_as_json_has_causes_that_add_up(stepscope: Command, starved: Path) -> None:
    told = json.loads(stepscope("blame", starved, "--format", "json", "--limit", "0").out)

    assert len(told["requests"]) == told["num_requests"] == 40
    for request in told["requests"]:
        assert sum(request["blame_ns"].values()) == request["latency_ns"]
        if request["first_token_ns"] is not None:
            waited_ns = request["first_token_ns"] - request["arrive_ns"]
            assert sum(request["to_first_token_ns"].values()) == waited_ns
    assert sum(total["total_ns"] for total in told["totals"].values()) == told["total_ns"]


@slow
def test_blame_as_csv_has_a_row_per_request(stepscope: Command, starved: Path) -> None:
    run = stepscope("blame", starved, "--format", "csv", "--limit", "0", "--sort", "request")

    rows = list(csv.DictReader(io.StringIO(run.out)))
    assert [row["request"] for row in rows] == [f"req-{n:02}" for n in range(40)]
    for row in rows:
        assert sum(int(row[cause.column]) for cause in CAUSES) == int(row["latency_ns"])


@looped("form", ["text", "json", "csv"])
def test_lengths_of_steps_that_a_log_does_not_tell_are_called_inferred(
    stepscope: Command, tmp_path: Path, form: str
) -> None:
    log = tmp_path / "sglang.log"
    log.write_text(SGLANG)

    run = stepscope("blame", log, "--format", form)

    assert "how long 1 step took is inferred: each until the line of the next" in run.out + run.err


@slow
def test_sorting_by_a_cause_puts_first_who_lost_most_to_it(
    stepscope: Command, starved: Path
) -> None:
    run = stepscope("blame", starved, "--format", "json", "--sort", "preempted")

    lost = [each["blame_ns"].get("preempted", 0) for each in json.loads(run.out)["requests"]]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] > 0


@slow
def test_one_request_is_told_with_the_reasons_that_were_recorded(
    stepscope: Command, starved: Path
) -> None:
    run = stepscope("blame", starved, "--request", "req-03")

    assert run.out.startswith("req-03: ")
    assert "first token after" in run.out
    assert "deferred: waits behind req-1" in run.out


def test_an_unknown_request_names_near_ones(stepscope: Command, starved: Path) -> None:
    run = stepscope("blame", starved, "--request", "req03")

    assert run.code == 2
    assert "did you mean req-03" in run.err


def test_an_unknown_order_names_near_ones(stepscope: Command, starved: Path) -> None:
    run = stepscope("blame", starved, "--sort", "preemted")

    assert run.code == 2
    assert "preempted" in run.err


@looped("form", ["text", "json", "csv"])
@looped("more", [(), ("--request", HOSTILE)])
def test_names_out_of_a_trace_do_not_steer_a_terminal(
    stepscope: Command, hostile: Path, form: str, more: tuple[str, ...]
) -> None:
    run = stepscope("blame", hostile, "--format", form, *more)

    assert run.code == 0
    assert "\x1b" not in run.out
    assert "evil" in run.out


def test_a_profile_without_requests_has_its_run_blamed(
    stepscope: Command, sample_traces: Path
) -> None:
    run = stepscope("blame", sample_traces / "torch_profiler_cpu.json.gz")

    assert run.code == 0
    assert "all of rank 0" in run.out
    assert "note: the trace names no requests" in run.out


def test_runs_of_several_ranks_are_counted_as_ranks(stepscope: Command, tmp_path: Path) -> None:
    steps = [
        {"rank": rank, "step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "decode"} for rank in (0, 1)
    ]
    save_trace(trace_of(steps=steps, ranks=(0, 1)), tmp_path / "two.trace")

    run = stepscope("blame", tmp_path / "two.trace")

    assert "waterfall of 2 of 2 ranks, by latency" in run.out
    assert "2 of 2 requests" not in run.out


def test_a_trace_with_nothing_in_it_says_so(stepscope: Command, tmp_path: Path) -> None:
    save_trace(trace_of(counters=[{"name": "x", "value": 1.0}]), tmp_path / "empty.trace")

    run = stepscope("blame", tmp_path / "empty.trace")

    assert run.code == 0
    assert "nothing to blame" in run.out
    assert Trace.open(tmp_path / "empty.trace").num_rows("steps") == 0


@slow
def test_a_limit_beyond_all_numbers_shows_all_requests(stepscope: Command, starved: Path) -> None:
    most = stepscope("blame", starved, "--limit", "99999999999999999999")

    assert (most.code, most.out) == (0, stepscope("blame", starved, "--limit", "0").out)


def test_an_slo_says_how_many_a_second_met_it_who_missed_it_and_what_took_the_time(
    stepscope: Command, repaired: Path
) -> None:
    run = stepscope("blame", repaired, "--slo", "ttft=1s,latency=20s", "--limit", "2")

    assert run.code == 0
    told = run.out.splitlines()
    assert "SLO ttft ≤ 1.00 s, latency ≤ 20.0 s" in told
    assert any(line.startswith("goodput ") and "requests/s met all of it" in line for line in told)
    assert sum(line.startswith(("ttft  ", "latency  ")) for line in told) >= 2
    assert "missed, the worst first" in told


def test_the_slo_in_json_adds_up_to_the_requests(stepscope: Command, repaired: Path) -> None:
    words = ("--slo", "ttft=1s,tpot=60ms", "--format", "json", "--limit", "0")

    told = json.loads(stepscope("blame", repaired, *words).out)

    slo = told["slo"]
    assert slo["limits_ns"] == {"ttft": 10**9, "tpot": 60 * 10**6}
    assert sum(slo["verdicts"].values()) == told["num_requests"] == len(slo["requests"])
    assert [row["request"] for row in slo["requests"]] == [
        row["request"] for row in told["requests"]
    ]
    for each in slo["objectives"]:
        assert each["num_met"] + each["num_missed"] + each["num_unknown"] == told["num_requests"]
    met = slo["verdicts"]["met"]
    assert slo["goodput_per_s"] == pytest.approx(met * 10**9 / slo["span_ns"])


def test_the_slo_in_csv_is_a_word_for_each_request(stepscope: Command, repaired: Path) -> None:
    run = stepscope("blame", repaired, "--slo", "ttft=1s", "--format", "csv", "--limit", "0")

    rows = list(csv.DictReader(io.StringIO(run.out)))
    assert {row["slo"] for row in rows} <= {"met", "missed", "unknown", "not served"}
    late = [row for row in rows if row["slo"] == "missed"]
    assert late
    assert all(int(row["ttft_ns"]) > 10**9 and row["slo_cause"] for row in late)


def test_of_one_request_the_slo_says_what_each_limit_was_and_what_it_took(
    stepscope: Command, repaired: Path
) -> None:
    run = stepscope("blame", repaired, "--slo", "ttft=1ns", "--request", "req-07")

    (line,) = (line for line in run.out.splitlines() if line.startswith("ttft "))
    assert "missed" in line


def test_an_slo_of_a_profile_says_that_no_latency_is_recorded(
    stepscope: Command, tmp_path: Path
) -> None:
    path = tmp_path / "profile.trace"
    save_trace(trace_of(steps=[{"step": 1, "ts_ns": 0, "dur_ns": 9, "kind": "decode"}]), path)

    run = stepscope("blame", path, "--slo", "ttft=1ms")

    assert run.code == 0
    assert "Of no request is a latency recorded, so no SLO can be judged." in run.out


def test_a_bad_slo_is_one_line_and_exit_code_2_before_anything_is_read(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("blame", tmp_path / "absent.trace", "--slo", "ttft=fast")

    assert run.code == 2
    assert len(run.err.splitlines()) == 1
    assert "--slo ttft=fast" in run.err


def test_names_of_who_missed_an_slo_steer_no_terminal(stepscope: Command, hostile: Path) -> None:
    run = stepscope("blame", hostile, "--slo", "latency=1ns")

    assert "\x1b[31mevil" not in run.out
    assert "evil" in run.out
