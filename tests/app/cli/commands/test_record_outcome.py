"""What `record` says of a run that did not come to its end, and of several together."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.ingest.trace import Trace
from tests.app.cli.conftest import Command
from tests.tiers import slow


@slow
def test_a_run_that_stalled_is_told_and_exits_1(stepscope: Command, tmp_path: Path) -> None:
    run = stepscope("record", "mix-admission", "--variant", "after", "--set", "task_slots=4",
                    "-o", tmp_path / "s.trace")  # fmt: skip

    header, _, row = run.out.splitlines()
    assert run.code == 1
    assert row[header.index("outcome") :].startswith("stalled: scope deadlock: ")
    assert row.split()[4:8] == ["-"] * 4  # no graph came to its end
    assert "warning: after was given up: device: scope deadlock: " in run.err


@slow
def test_a_run_that_a_fault_stalled_is_what_was_asked_for(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("record", "mix-admission", "--fault", "lost-ring-advance",
                    "-o", tmp_path / "s.trace")  # fmt: skip

    assert run.code == 0
    assert "warning: after was given up: device: " in run.err


def test_a_known_bug_that_asks_for_what_cannot_be_is_recorded_up_to_there(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("record", "mixed-batches", "--fault", "scheduled-twice", "--set",
                    "deferred=true", "--set", "requests=8", "-o", tmp_path / "s.trace")  # fmt: skip

    assert (run.code, len(run.out.splitlines())) == (0, 3)
    assert "refused: paged, step " in run.out
    assert Trace.open(tmp_path / "s.trace").lifecycle.filter(event="abort").collect().height > 0


def test_all_skips_what_a_variant_refuses_and_still_prints_the_table(
    stepscope: Command, tmp_path: Path
) -> None:
    run = stepscope("record", "mixed-batches", "--variant", "all", "--set", "requests=4",
                    "--set", "deferred=true", "--set", "prompt_len=64", "-o", tmp_path)  # fmt: skip

    shown = [line.split()[0] for line in run.out.splitlines()]
    assert run.code == 0
    assert {"before", "after", "deferred"} < set(shown)
    assert "mtp" not in shown
    assert "skipped mtp: MTP does not work with deferred output" in run.err
    assert not (tmp_path / "mtp.trace").exists()


@slow
def test_all_goes_on_behind_a_run_whose_batch_fails_and_says_so_in_its_row(
    stepscope: Command, tmp_path: Path
) -> None:
    words = ("--set", "backend=mha", "--set", "requests=24", "--set", "max_tokens=8")
    run = stepscope("record", "mixed-batches", "--variant", "all", *words, "-o", tmp_path / "all")

    outcomes = {line.split()[0]: line.split("  ")[-1] for line in run.out.splitlines()}
    assert outcomes["flag-off"] == "served"
    assert outcomes["after"].startswith("step 4, 2 prefill + 1 decode: the mha backend")
    assert "warning: after was given up: step 4, " in run.err
    assert (tmp_path / "all" / "after.trace").exists()
    assert run.code == 1


def test_a_batch_that_a_fault_makes_fail_is_what_was_asked_for(
    stepscope: Command, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    words = ("--fault", "input-ids-not-sliced", "--executor", "torch", "--set", "requests=6")
    run = stepscope("record", "mixed-batches", *words, "-o", tmp_path / "run.trace")

    assert ": the model failed: " in run.out.splitlines()[-1]
    assert run.code == 0


def test_all_is_refused_where_every_variant_refuses(stepscope: Command, tmp_path: Path) -> None:
    run = stepscope("record", "mix-admission", "--variant", "all", "--set", "group=8",
                    "-o", tmp_path / "all")  # fmt: skip

    assert (run.code, run.out, len(run.err.splitlines())) == (2, "", 1)


@slow
def test_all_with_torch_skips_what_runs_on_costs_alone(stepscope: Command, tmp_path: Path) -> None:
    pytest.importorskip("torch")

    run = stepscope("record", "mixed-batches", "--variant", "all", "--executor", "torch",
                    "--set", "requests=2", "-o", tmp_path)  # fmt: skip

    assert run.code == 0
    assert len(run.out.splitlines()) == 2 + 8
    assert "skipped data-parallel: data-parallel runs on costs alone" in run.err
