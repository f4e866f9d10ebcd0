"""`stepscope replay` of the reference engine: what is said, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from stepscope.ingest.trace import Trace
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow


def test_an_unchanged_run_has_the_same_bytes_and_exits_0(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    run = stepscope("replay", starved, "--check", "-o", tmp_path / "again.trace")

    assert run.code == 0
    assert run.out.splitlines()[:3] == [
        "recorded  starved.trace: fcfs-preemption before",
        "replayed  unchanged",
        "the same bytes in every file",
    ]
    assert Trace.open(tmp_path / "again.trace").manifest.variant == "before"


def test_check_exits_4_and_names_the_file_where_a_byte_is_another(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    shutil.copytree(starved, tmp_path / "mine.trace")
    (tmp_path / "mine.trace" / "notes.txt").write_text("mine")

    checked = stepscope("replay", tmp_path / "mine.trace", "--check")
    unchecked = stepscope("replay", tmp_path / "mine.trace")

    assert (checked.code, unchecked.code) == (4, 0)
    assert "not the same bytes: notes.txt" in checked.out


@slow
def test_the_fix_is_compared_as_diff_does_it_and_exits_4(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    fixed = tmp_path / "fixed.trace"

    run = stepscope("replay", starved, "--variant", "after", "-o", fixed)
    compared = stepscope("diff", starved, fixed, "--rules")

    assert run.code == 4
    assert "replayed  with variant after" in run.out
    told = [line for line in run.out.splitlines() if "fixed.trace" not in line]
    assert set(told[3:]) & set(compared.out.splitlines())
    assert "STV001" in run.out


@slow
def test_a_program_gets_what_diff_gives_it(stepscope: Command, starved: Path) -> None:
    unchanged = json.loads(stepscope("replay", starved, "--format", "json").out)
    changed = json.loads(
        stepscope("replay", starved, "--set", "requests=20", "--format", "json").out
    )

    assert (unchanged["same_bytes"], unchanged["is_same"]) == (True, True)
    assert (changed["same_bytes"], changed["is_same"]) == (None, False)
    assert changed["diff"]["findings"]["a"]["STV001"] == 40


@looped(
    ("options", "why"),
    [
        (("--check", "--variant", "after"), "--check compares an unchanged run"),
        (("--no-fault", "block-leaked"), "fault 'block-leaked' was not switched on"),
        (("--variant", "aftr"), "try after"),
        (("--set", "request=3"), "try requests"),
        (("--set", "requests"), "not of the form key=value"),
        (("--page", "no/x.html", "--sweep", "requests=1,2"), "no: there is no such folder"),
        (("--page", "x.html"), "--page shows what --sweep ran"),
        (("--check", "--sweep", "requests=1..2"), "--check: only for a replay without --sweep"),
        (("--python", "here"), "--python: only for a run of an engine that is installed"),
        (("--engine", "vllm", "--check"), "on the engine that recorded the run"),
        (("--engine", "vllm", "--cost", "x"), "--cost: only for a run of the reference engine"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    stepscope: Command, starved: Path, options: tuple[str, ...], why: str
) -> None:
    run = stepscope("replay", starved, *options)

    assert run.code == 2
    assert why in run.err
    assert run.err.count("\n") == 1


def test_a_trace_that_does_not_say_what_was_given_is_refused(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    shutil.copytree(starved, tmp_path / "old.trace")
    manifest = tmp_path / "old.trace" / "manifest.json"
    told = json.loads(manifest.read_text())
    del told["config"]["given"]["faults"]
    manifest.write_text(json.dumps(told))

    run = stepscope("replay", tmp_path / "old.trace", "--check")

    assert run.code == 2
    assert "does not say what was given to `record`" in run.err


def test_a_run_of_another_engine_is_simulated_anew_and_compared(
    stepscope: Command, sample_traces: Path, tmp_path: Path
) -> None:
    crowd, out = sample_traces / "vllm_crowd.trace", tmp_path / "again.trace"

    run = stepscope("replay", crowd, "--engine", "stepscope", "-o", out)
    told = json.loads(stepscope("replay", crowd, "--engine", "stepscope", "--format", "json").out)
    swept = stepscope("replay", crowd, "--engine", "stepscope", "--sweep", "max_num_seqs=2,8")
    checked = stepscope("replay", crowd, "--engine", "stepscope", "--check")

    assert (run.code, swept.code, checked.code) == (4, 0, 2)
    assert "RE-SIMULATED" in run.out
    assert "makespan" in run.out
    assert (told["how"], told["settings"]["budget"]) == ("re-simulated", "128")
    assert [line.split()[0] for line in swept.out.splitlines()[1:]] == ["recorded", "2", "8"]
    assert "on the engine that recorded the run" in checked.err


def test_a_sweep_is_a_table_traces_and_a_page(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"

    run = stepscope("replay", starved, "--variant", "after", "--sweep", "num_kv_blocks=100,150",
                    "-o", tmp_path / "swept", "--page", page)  # fmt: skip
    again = stepscope("replay", starved, "--sweep", "num_kv_blocks=100,150", "--page", page)

    assert run.code == 0
    assert [line.split()[0] for line in run.out.splitlines()[1:]] == ["recorded", "100", "150"]
    assert Trace.open(tmp_path / "swept" / "num_kv_blocks=150.trace").manifest.variant == "after"
    text = page.read_text()
    assert "<title>starved.trace: fcfs-preemption after</title>" in text
    assert 'src="http' not in text
    assert again.code == 2
    assert "page.html: it exists; add --force" in again.err


@slow
def test_a_sweep_for_a_program_is_a_list(stepscope: Command, starved: Path) -> None:
    run = stepscope("replay", starved, "--sweep", "requests=4..8:4", "--format", "json")

    recorded, four, eight = json.loads(run.out)
    assert recorded["settings"] == {}
    assert (four["settings"], eight["settings"]) == ({"requests": "4"}, {"requests": "8"})
    assert (four["totals"]["requests"], eight["totals"]["requests"]) == (4, 8)


def test_a_sweep_over_what_is_no_setting_is_refused(stepscope: Command, starved: Path) -> None:
    run = stepscope("replay", starved, "--sweep", "blocks=1..3")

    assert run.code == 2
    assert "no setting is called 'blocks'" in run.err
