"""`stepscope diff`."""

from __future__ import annotations

import json
from pathlib import Path

from stepscope.ingest.storage.saving import save_trace
from tests.analyzers.rows import decision, event, life
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

HOSTILE = "\x1b[31mevil\n"


@slow
def test_diff_names_the_step_and_what_each_knew_and_what_came_of_it(
    stepscope: Command, starved: Path, repaired: Path
) -> None:
    run = stepscope("diff", starved, repaired)

    assert run.code == 0
    assert "they diverge in step 3: batch, row 0" in run.out
    assert "request req-29, phase decode" in run.out
    assert "waiting: 10  req-30" in run.out
    assert "scheduler.bucket" in run.out
    assert "40" in next(line for line in run.out.splitlines() if line.startswith("STV001"))
    assert "gained by B" in run.out


@slow
def test_diff_as_json_says_the_same(stepscope: Command, starved: Path, repaired: Path) -> None:
    told = json.loads(stepscope("diff", starved, repaired, "--format", "json").out)

    assert (told["verdict"], told["divergence"]["step"], told["divergence"]["stage"]) == (
        "diverged", 3, "batch",
    )  # fmt: skip
    ours, theirs = (each["state"] for each in told["knew"])
    assert ours["running"] == theirs["running"]
    assert ours["batch"] != theirs["batch"]
    assert told["findings"]["a"]["STV001"] == 40
    assert told["totals"]["finished"] == [0, 40]


@slow
def test_a_trace_compared_with_itself_does_the_same(stepscope: Command, starved: Path) -> None:
    run = stepscope("diff", starved, starved, "--no-rules")

    assert "they are the same in every step" in run.out
    assert "findings" not in run.out


def test_a_divergence_at_a_core_names_its_task_and_the_decisions_about_it(
    stepscope: Command, sample_traces: Path
) -> None:
    before, after = (sample_traces / f"mix-admission-{each}.trace" for each in ("before", "after"))

    run = stepscope("diff", before, after, "--no-rules")

    assert "placement" in run.out
    assert "A decided: task" in run.out
    assert "cores" in run.out


@slow
def test_profiles_are_compared_by_what_their_steps_were(
    stepscope: Command, sample_traces: Path
) -> None:
    profile = sample_traces / "torch_profiler_cpu.json.gz"

    run = stepscope("diff", profile, profile, "--no-rules")

    assert run.code == 0
    assert "the same in every step" in run.out


@looped("form", ["text", "json"])
def test_names_out_of_a_trace_do_not_steer_a_terminal(
    stepscope: Command, tmp_path: Path, form: str
) -> None:
    for name, request in (("a", HOSTILE), ("b", f"{HOSTILE}2")):
        save_trace(
            trace_of(
                variant=HOSTILE + name,
                steps=[{"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "decode"}],
                batch_rows=[
                    {"step": 1, "ts_ns": 0, "request": request, "phase": "decode", "num_tokens": 1}
                ],
                lifecycle=[event(request, "arrive", 0), event(request, "finish", 10)],
                decisions=[decision("bucket", HOSTILE, "chosen", 0, reason=HOSTILE, step=1)],
            ),
            tmp_path / f"{name}.trace",
        )

    run = stepscope("diff", tmp_path / "a.trace", tmp_path / "b.trace", "--format", form)

    assert run.code == 0
    assert "\x1b" not in run.out
    assert "evil" in run.out


def test_a_trace_that_is_not_there_is_one_clear_line(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    run = stepscope("diff", starved, tmp_path / "absent.trace")

    assert run.code in {2, 3}
    assert len(run.err.splitlines()) == 1


@slow
def test_it_says_what_became_of_all_requests_and_that_latencies_are_of_the_finished(
    stepscope: Command, starved: Path, repaired: Path
) -> None:
    lines = stepscope("diff", starved, repaired, "--no-rules").out.splitlines()

    told = {line[:24].strip(): line[24:].split() for line in lines}
    assert told["arrived"] == ["40", "40"]
    assert told["finished"] == ["0", "40"]
    assert told["aborted"] == ["40", "0"]
    assert told["open"] == ["0", "0"]
    assert "latency mean of finished" in told


def test_where_no_rule_could_judge_both_they_do_not_find_as_much(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    spans = [{"span": 1, "track": "main", "name": "work", "dur_ns": 5}]
    save_trace(trace_of(spans=spans), tmp_path / "spans.trace")

    for other in (starved, tmp_path / "spans.trace"):
        out = stepscope("diff", tmp_path / "spans.trace", other).out
        assert "no rule could judge what ran in both" in out
        assert "found as much" not in out
        assert "A: 2 of " in out


@slow
def test_it_says_how_many_rules_find_as_much(stepscope: Command, starved: Path) -> None:
    out = stepscope("diff", starved, starved).out

    assert out.splitlines()[-1].endswith(
        "rules could judge what ran in both, and found as much in each"
    )


def test_requests_under_other_ids_are_paired_and_that_is_said(
    stepscope: Command, tmp_path: Path
) -> None:
    for run, name in (("a", "0-9ab12cd3"), ("b", "0-77aa00ff")):
        batch = [{"step": 1, "request": name, "phase": "decode", "num_tokens": 1}]
        save_trace(
            trace_of(lifecycle=[event(name, "arrive", 0)], batch_rows=batch),
            tmp_path / f"{run}.trace",
        )
    pair = tmp_path / "a.trace", tmp_path / "b.trace"

    text = stepscope("diff", *pair, "--no-rules").out
    told = json.loads(stepscope("diff", *pair, "--no-rules", "--format", "json").out)

    assert "1 pair inferred from what of their ids is not made up" in text
    assert "they are the same in every step, of batch, arrivals" in text
    assert told["paired"] == {
        "by": {"what of their ids is not made up": 1}, "a_by_b": {"0-77aa00ff": "0-9ab12cd3"},
    }  # fmt: skip


@slow
@looped(
    ("conditions", "code"),
    [
        (("divergence",), 1),
        (("makespan+2%",), 0),
        (("new-findings", "tokens_per_s-3%"), 0),
        (("ttft_p99+5%",), 1),
    ],
)
def test_a_condition_that_is_met_or_not_told_fails_the_build(
    conditions: tuple[str, ...], code: int, stepscope: Command, starved: Path, repaired: Path
) -> None:
    asked = [word for each in conditions for word in ("--fail-on", each)]

    run = stepscope("diff", starved, repaired, "--no-rules", *asked)

    assert run.code == code
    words = {0: "ok", 1: "not judged" if "ttft" in conditions[0] else "FAIL"}
    assert f"{words[code]}  {conditions[0]}: " in run.out


def test_the_way_back_fails_on_what_it_brings_and_says_so_in_a_comment(
    stepscope: Command, starved: Path, repaired: Path
) -> None:
    run = stepscope("diff", repaired, starved, "--format", "markdown", "--link", "https://x/a(b)",
                    "--fail-on", "new-findings,tokens_per_s-3%")  # fmt: skip

    assert run.code == 1
    assert "### stepscope: 2 of 2 conditions failed" in run.out
    assert "STV001 40 times&#44; never in A" in run.out
    assert "they diverge in step 3" in run.out
    assert "(https://x/a%28b%29)" in run.out
    assert "requests lost by it" in run.out


def test_names_of_a_trace_are_neither_markdown_nor_html_in_a_comment(
    stepscope: Command, tmp_path: Path
) -> None:
    name = "</code><img src=x onerror=alert(1)> **bold** [x](javascript:1) | @team"
    for file, ended in (("a", 3), ("b", 9)):
        rows = life(name, 1, 2, ended)
        save_trace(trace_of(lifecycle=rows), tmp_path / f"{file}.trace")

    run = stepscope("diff", tmp_path / "a.trace", tmp_path / "b.trace", "--format", "markdown",
                    "--no-rules", "--fail-on", "divergence")  # fmt: skip

    assert "1 request lost by it" in run.out
    for char in ("<img", "**bold", "](javascript", "@team"):
        assert char not in run.out


def test_folders_of_runs_are_compared_by_their_medians(
    stepscope: Command, starved: Path, repaired: Path, tmp_path: Path
) -> None:
    for side, trace in (("main", repaired), ("head", starved)):
        (tmp_path / side).mkdir()
        for number in range(2):
            (tmp_path / side / f"{number}.trace").symlink_to(trace)

    run = stepscope("diff", tmp_path / "main", tmp_path / "head", "--fail-on", "tokens_per_s-3%",
                    "--fail-on", "divergence")  # fmt: skip

    assert run.code == 1
    assert "FAIL  tokens_per_s-3%: medians of 2 and 2 runs: " in run.out
    assert "not judged  divergence" in run.out
    told = json.loads(
        stepscope("diff", tmp_path / "main", tmp_path / "head", "--format", "json").out
    )
    assert told["medians"]["finished"] == [40, 0]
    assert len(told["a"]) == 2


def test_a_folder_without_a_trace_is_refused(stepscope: Command, tmp_path: Path) -> None:
    run = stepscope("diff", tmp_path, tmp_path, "--fail-on", "divergence")

    assert run.code == 3
    assert "there is no trace in this folder" in run.err


@slow
@looped("names", [True, False])
def test_time_that_is_compared_is_that_of_requests_or_of_the_whole_run(
    stepscope: Command, tmp_path: Path, names: bool
) -> None:
    files = [tmp_path / f"{name}.trace" for name in "ab"]
    for file, took in zip(files, (30, 70), strict=True):
        steps = [{"step": 1, "ts_ns": 0, "dur_ns": took, "kind": "decode"}]
        lifecycle = [event("r", "arrive", 0), event("r", "finish", took)] if names else []
        save_trace(trace_of(steps=steps, lifecycle=lifecycle), file)

    run = stepscope("diff", *files)

    assert ("time of all requests" in run.out) is names
    assert ("time of the whole run" in run.out) is not names


def test_where_neither_run_tells_what_came_of_it_diff_says_so(
    stepscope: Command, tmp_path: Path
) -> None:
    file = tmp_path / "counted.trace"
    save_trace(trace_of(counters=[{"name": "x", "value": 1.0}]), file)

    run = stepscope("diff", file, file)

    assert run.code == 0
    assert "neither says what came of its run" in run.out
    assert "outcome" not in run.out
