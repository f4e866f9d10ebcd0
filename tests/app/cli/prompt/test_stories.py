"""Stories at the prompt: somebody types, reads, and types on, until a conflict is understood."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from stepscope.app.cli.prompt.loop import Loop
from stepscope.app.cli.prompt.printing import AsText
from stepscope.app.cli.prompt.typing import converse
from stepscope.app.debug.debugger import Debugger
from stepscope.ingest.trace import Trace
from tests.tiers import slow

CTRL_D = "\x04"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")


def told(trace: Path, capsys: pytest.CaptureFixture[str], *typed: str) -> str:
    """Type lines at a prompt, and return what was printed on the way."""
    with create_pipe_input() as source:
        source.send_text("".join(f"{line}\r" for line in typed) + CTRL_D)
        converse(Loop(Debugger(Trace.open(trace)), AsText()), source, DummyOutput())
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


@slow
def test_find_a_conflict_and_the_decision_that_made_it(
    sample_traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = sample_traces / "fcfs-preemption-before.trace"

    log = told(trace, capsys, "break finding KVB003", "continue", "print waiting req-01")

    assert "step 67 of 88" in log
    assert 'because "another bucket runs"' in log
    assert log.splitlines()[-2].split()[:4] == ["28", "req-01", "preempted", "another"]


def test_go_back_to_who_took_the_block_and_why(
    sample_traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = sample_traces / "fcfs-preemption-before.trace"

    log = told(trace, capsys, "goto 67", "rwatch block 2", "flag lost", "backi", "", "goto @lost")

    tables = [line.split(":")[0] for line in log.splitlines() if ": " in line and line[0] != " "]
    assert tables == ["allocations", "lifecycle", "decisions"]
    assert "op=release resource=kv-block id=2 owner=req-01" in log
    assert "reason=another bucket runs" in log
    assert log.splitlines()[-1].startswith("step 66 of 88")


def test_a_real_engine_has_a_story_too(
    sample_traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = told(
        sample_traces / "vllm_crowd.trace", capsys,
        "break steps: num_waiting > 10 and kv_blocks_free = 0", "continue", "why", "rc",
    )  # fmt: skip

    assert "stop 1, break steps: num_waiting > 10 and kv_blocks_free = 0" in log
    assert "left out here" in log
    assert "no stop was hit since the start" in log
