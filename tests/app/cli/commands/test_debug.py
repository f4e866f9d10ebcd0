"""`stepscope debug`: lines from scripts and pipes, answers for people and for programs."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.app.widths import width_of
from stepscope.ingest.storage.saving import save_trace
from tests.app.cli.conftest import Command, Run
from tests.tiers import slow
from tests.traces import trace_of

Debug = Callable[..., Run]
ESCAPE = "\x1b[31mred\u202e"


@pytest.fixture
def sample(sample_traces: Path) -> Path:
    return sample_traces / "fcfs-preemption-before.trace"


@pytest.fixture
def debug(
    stepscope: Command, sample: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Debug:
    """Pipe lines into the command."""
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*typed: str, options: tuple[object, ...] = (), trace: Path = sample) -> Run:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed)))
        return stepscope("debug", trace, *options)

    return run


def hostile(tmp_path: Path) -> Path:
    """A trace whose request is called by what steers a terminal."""
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 100, "dur_ns": 9, "kind": "decode"}],
        lifecycle=[{"step": 1, "ts_ns": 90, "event": "arrive", "request": ESCAPE}],
    )
    save_trace(trace, tmp_path / "hostile.trace")
    return tmp_path / "hostile.trace"


def test_a_log_shows_each_line_behind_where_it_was_asked(debug: Debug) -> None:
    run = debug("break preempt", "continue", "stepi")

    told = run.out.splitlines()
    assert run.code == 0
    assert "step 1> break preempt" in told
    assert "step 65> stepi" in told
    assert told[-1].startswith("step 65 of 88 · 5.207679 s")


def test_every_command_fits_into_80_columns(debug: Debug) -> None:
    asked = ("goto 70", "state", "print waiting", "why", "all finding", "value num_waiting",
             "who block 5", "diff start end", "help", "help break", "info ranks", "list",
             "sql select * from steps", "trace preempt", "stepi 5", "back", "backi 2",
             "watch block 5", "rc", "rwatch block 5", "info stops", "where")  # fmt: skip
    run = debug(*asked)

    assert run.code == 0
    assert [line for line in run.out.splitlines() if width_of(line) > 80] == []


def test_a_script_runs_before_what_is_piped_in_and_alone_in_a_batch(
    debug: Debug, tmp_path: Path
) -> None:
    script = tmp_path / "story.txt"
    script.write_text("# to the middle\n\ngoto 45\n")

    both = debug("step", options=("-x", script))
    alone = debug("step", options=("-x", script, "--batch"))

    assert "step 45> step" in both.out
    assert "step 45>" not in alone.out
    assert "step 45 of 88" in alone.out


def test_what_fails_is_one_line_and_the_exit_code_and_the_rest_goes_on(debug: Debug) -> None:
    run = debug("gto 5", "goto 5")

    assert run.code == 2
    assert run.err == "stepscope: no command 'gto'; did you mean goto?\n"
    assert "step 5 of 88" in run.out


def test_in_a_batch_the_first_failure_is_the_end(debug: Debug, tmp_path: Path) -> None:
    script = tmp_path / "story.txt"
    script.write_text("goto 999\nstep\n")

    of_script = debug(options=("-x", script, "--batch"))
    piped = debug("goto 999", "step", options=("--batch",))

    for run in (of_script, piped):
        assert run.code == 2
        assert run.err.count("\n") == 1
        assert "step 1> step" not in run.out


def test_a_program_gets_an_object_for_each_line(debug: Debug) -> None:
    run = debug("goto 5", "gto 5", "where", options=("--json",))

    told = [json.loads(line) for line in run.out.splitlines()]
    assert [each["command"] for each in told] == ["goto 5", "gto 5", "where"]
    assert told[0]["answer"]["position"]["step"] == 5
    assert told[1]["error"]["todo"] == "did you mean goto?"
    assert told[2]["answer"] == told[0]["answer"]
    assert (run.code, run.err) == (2, "")


def test_a_value_that_is_no_number_is_null_for_a_program(debug: Debug) -> None:
    run = debug("sql select sqrt(-1.0 * step) as root from steps limit 1", options=("--json",))

    assert json.loads(run.out)["answer"]["rows"] == [{"root": None}]


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_names_of_a_trace_steer_no_terminal(
    debug: Debug, tmp_path: Path, options: tuple[str, ...]
) -> None:
    lines = ("state", "print waiting", "all arrive", f"why {ESCAPE}", f"why {ESCAPE}x", "stepi")
    run = debug(*lines, options=options, trace=hostile(tmp_path))

    assert "red" in run.out
    assert not {"\x1b", "\u202e"} & {*run.out, *run.err}


def test_quit_leaves_what_follows_unread(debug: Debug) -> None:
    run = debug("quit", "gto")

    assert (run.code, run.err) == (0, "")


def test_a_script_that_cannot_be_read_is_said_before_the_trace_is_opened(
    debug: Debug, tmp_path: Path
) -> None:
    bytes_of_none = tmp_path / "none"
    bytes_of_none.write_bytes(b"\xff\xfe")

    missing = debug(options=("-x", tmp_path / "missing"), trace=tmp_path / "no.trace")
    broken = debug(options=("-x", bytes_of_none))

    assert missing.err.endswith("missing: No such file or directory\n")
    assert "not UTF-8" in broken.err
    assert (missing.code, broken.code) == (2, 2)


def test_an_unknown_rank_and_an_unreadable_trace_have_their_exit_codes(
    debug: Debug, tmp_path: Path
) -> None:
    assert debug(options=("--rank", 7)).code == 2
    assert debug(trace=tmp_path / "no.trace").code == 3


def test_an_empty_trace_answers_every_command_in_a_line(debug: Debug, tmp_path: Path) -> None:
    save_trace(trace_of(), tmp_path / "empty.trace")
    run = debug("where", "state", "step", "backi", "goto 5", "why", "value num_waiting", "break x",
                "continue", "list", "help", trace=tmp_path / "empty.trace")  # fmt: skip

    assert run.code == 2
    assert "bug" not in run.err


@pytest.mark.parametrize(
    "name", ["vllm_crowd.trace", "perfetto_two_ranks.pftrace", "torch_profiler_cpu.json.gz"]
)
def test_a_real_file_answers_or_says_what_it_lacks_and_nothing_breaks(
    debug: Debug, sample_traces: Path, name: str
) -> None:
    asked = ("state", "stepi 3", "goto 40%", "backi", "print waiting", "print collectives", "why",
             "list", "info ranks", "diff start end", "value dur_ns / 1000", "who block 5",
             "watch core 1", "rwatch block 5", "break steps: dur_ns > 0", "c", "rc", "rank 1",
             "goto 99999999999999999999", "goto 150%", "si 9999", "all steps: dur_ns > 0 => dur_ns",
             "sql select * from holds limit 3", "delete", "rc")  # fmt: skip
    run = debug(*asked, trace=sample_traces / name)

    assert run.code == 2
    assert "a bug in stepscope" not in run.err
    assert all(line.startswith("stepscope: ") for line in run.err.splitlines())
    assert [line for line in run.out.splitlines() if width_of(line) > 80] == []


@slow
def test_no_other_command_loads_the_prompt() -> None:
    code = "import sys; from stepscope.app.cli import main; main(['rules']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {"prompt_toolkit", "stepscope.app.cli.prompt"} & set(done.stdout.split())
