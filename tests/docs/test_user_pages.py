"""The pages for users do what they say: their commands print it, their code runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope import Recorder, Trace
from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.views.known import CLOCK
from stepscope.app.cli.commands.fleet import fleet
from stepscope.app.cli.main import COMMANDS
from tests.conftest import ROOT
from tests.docs.command_server import ready_commands
from tests.docs.transcripts import console
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.tiers import slow

DOCS = ROOT / "docs"
TUTORIAL = (DOCS / "tutorial.md").read_text(encoding="utf-8")
FLEET = (DOCS / "fleet.md").read_text(encoding="utf-8")
RECORDER = (DOCS / "recorder.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def commands() -> Iterator[Path]:
    with ready_commands() as folder:
        yield folder


def test_the_tutorial_shows_what_its_commands_print(commands: Path, tmp_path: Path) -> None:
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    shown = console(TUTORIAL)

    assert {"info", "sql", "blame", "check", "convert"} <= {each.line.split()[1] for each in shown}
    for command in shown:
        output = command.run(tmp_path, commands)
        assert command.is_met_by(output), f"$ {command.line}\n{output}"


@slow
def test_the_page_on_fleets_shows_what_its_commands_print(commands: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    write_job(runs / "job0", job(3, num_steps=6), Look(), Look(), Look(swapped=9))
    write_job(runs / "job1", job(2, num_steps=6, seed=1), Look(), Look())
    (runs / "job1" / "rank1.json").write_bytes(b"nothing that a profiler writes")
    shutil.copytree(ROOT / "sample_traces" / "fcfs-preemption-before.trace", runs / "one.trace")

    shown = console(FLEET)

    assert [each.line.split()[1] for each in shown].count("fleet") == 3
    for command in shown:
        output = command.run(tmp_path, commands)
        assert command.is_met_by(output), f"$ {command.line}\n{output}"


def test_the_other_commands_on_fleets_have_options_that_are_there() -> None:
    unrun = "\n".join(re.findall(r"```sh\n(.*?)```", FLEET, flags=re.DOTALL))
    options = {each for command in fleet.params for each in command.opts}

    assert unrun.count("stepscope fleet") == 4
    assert set(re.findall(r" (--\w+)", unrun)) <= options


OURS = {"tui", "web", "open", "report"}


def test_of_what_the_tutorial_cannot_run_here_ours_are_commands() -> None:
    unrun = "\n".join(re.findall(r"```sh\n(.*?)```", TUTORIAL, flags=re.DOTALL))
    named = re.findall(r"^(\w+) (\S+)", unrun, re.MULTILINE)

    assert {program for program, _ in named} == {"vllm", "curl", "stepscope"}
    assert {word for program, word in named if program == "stepscope"} == OURS
    assert set(COMMANDS) >= OURS


@dataclass
class Batch:
    """A batch of somebody's engine."""

    began_ns: int
    dur_ns: int
    kind: str
    requests: list[SimpleNamespace]


class Engine:
    """Somebody's engine: one request is prefilled, then decodes twice."""

    waiting = ("b",)
    running = ("a",)

    def steps(self) -> list[Batch]:
        kinds = (("prefill", 7), ("decode", 1), ("decode", 1))
        return [
            Batch(1_000 * n, 900, kind, [SimpleNamespace(id="a", phase=kind, num_tokens=tokens)])
            for n, (kind, tokens) in enumerate(kinds)
        ]


def test_the_ten_lines_record_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recording, *_ = re.findall(r"```python\n(.*?)```", RECORDER, flags=re.DOTALL)

    exec(recording, {"my_engine": Engine()})  # noqa: S102 - the page's own code

    trace = Trace.open("run.trace")
    assert trace.steps.collect()["kind"].to_list() == ["prefill", "decode", "decode"]
    assert trace.batch_rows.collect()["num_tokens"].to_list() == [7, 1, 1]
    assert trace.manifest.closed


def test_the_lines_for_hot_loops_record_what_they_say(tmp_path: Path) -> None:
    _, hot, *_ = re.findall(r"```python\n(.*?)```", RECORDER, flags=re.DOTALL)
    with Recorder(tmp_path / "run.trace", producer="engine") as recorder:
        given = {"recorder": recorder, "now_ns": 100, "dur_ns": 9, "waiting": ["c", "d"]}

        exec(hot, {**given, "reasons": ["late", "long"]})  # noqa: S102 - the page's own code

    trace = Trace.open(recorder.path)
    rows = trace.batch_rows.sort("step").select("step", "request", "num_tokens").collect().rows()
    assert rows == [(7, "a", 512), (8, "b", 9), (9, "b", 1)]
    assert trace.outputs.select("request", "position").collect().rows() == [("b", 1)]
    assert trace.decisions.collect()["reason"].to_list() == ["late", "long"]
    assert trace.steps.collect()["dur_ns"].to_list() == [9]
    assert recorder.dropped == {}


def test_the_lines_for_a_start_record_one_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPSCOPE_START", "")
    _, _, start, *_ = re.findall(r"```python\n(.*?)```", RECORDER, flags=re.DOTALL)
    made: dict[str, Any] = {"rank": 1}

    exec(start, made)  # noqa: S102 - the page's own code

    for name in ("recorder", "front_end"):
        made[name].close()
    (trace,) = (tmp_path / "traces").iterdir()
    assert Trace.open(trace).manifest.ranks == (0, 1)


@slow
def test_the_page_on_recording_names_what_each_family_looks_at() -> None:
    rows = re.findall(r"^\| ([A-Z]{3}): .* \| (.+) \|$", RECORDER, re.MULTILINE)
    told = {family: set(re.findall(r"`(\w+)`", tables)) for family, tables in rows}

    assert told == {
        family: {
            need.partition(".")[0]
            for rule in RULES
            if rule.code.startswith(family)
            for need in rule.needs
            if need != CLOCK
        }
        for family in ("STV", "BAT", "KVB", "BUF", "COL", "COR", "EQV")
    }
