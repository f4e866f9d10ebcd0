from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stepscope.app.cli import main
from stepscope.app.present.plain_text import lines
from stepscope.app.replay.compared import compared
from stepscope.app.replay.what_if.came import Came, Figures, Said
from stepscope.app.replay.what_if.runs import CANCELLED, CHILD, Run, WhatIfs
from stepscope.app.replay.what_if.told import ended, run_told
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.tiers import slow

LONG = "requests=400 num_kv_blocks=400"
PATIENCE_S = 180.0
ON_A_FULL_DISK = f"""
import resource, runpy, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
runpy.run_module({CHILD!r}, run_name="__main__")
"""
"""No file may have more than a page, which a system says as it says that a disk is full."""


@pytest.fixture
def asked(
    sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WhatIfs]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = WhatIfs(Trace.open(sample_traces / stories.BEFORE))
    yield found
    found.close()


@pytest.fixture(scope="module")
def fixed(
    sample_traces: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[WhatIfs, Run]]:
    """The run with the fix, over."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("fixed")))
        found = WhatIfs(Trace.open(sample_traces / stories.BEFORE))
        run = until_over(found, found.start("after"))
    yield found, run
    found.close()


def started_as(monkeypatch: pytest.MonkeyPatch, *command: str) -> None:
    """Have the process of a run be another one, with the same arguments behind its command."""
    real = subprocess.Popen

    def start(usual: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return real([sys.executable, *command, *usual[4:]], **options)

    monkeypatch.setattr(subprocess, "Popen", start)


def until_over(asked: WhatIfs, run: Run) -> Run:
    ends = time.monotonic() + PATIENCE_S
    while run.is_under_way:
        assert time.monotonic() < ends
        asked.wait(run, 1.0)
    return run


def came_of(run: Run) -> Came:
    assert run.came is not None, run.failed
    return run.came


def told_rows(figures: Figures | None) -> list[str]:
    return [" ".join(row) for row in figures.rows] if figures else []


@slow
def test_the_figures_are_those_of_diff_over_the_trace_that_was_kept(
    fixed: tuple[WhatIfs, Run],
) -> None:
    asked, run = fixed
    came = came_of(run)

    both = compared((asked.trace, Trace.open(run.out)), rules=True, report=lambda *_: None)
    printed = {" ".join(line.split()) for line in both.lines()}
    for figures in (came.totals, came.causes, came.findings):
        assert told_rows(figures)
        assert {*told_rows(figures)} <= printed
    for line in (*came.verdict, *came.rows, *came.judged):
        assert " ".join(line.split()) in printed
    assert (came.rank, came.step) == (0, stories.DIVERGED_AT)
    assert came.findings
    assert {row[0]: row[1:] for row in came.findings.rows} == {
        code: (str(number), "0") for code, number in stories.FOUND_BEFORE.items()
    }


@slow
def test_the_trace_that_was_kept_is_what_the_command_records(
    fixed: tuple[WhatIfs, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = fixed
    monkeypatch.chdir(tmp_path)

    words = run.command.removeprefix("stepscope ").split()
    main(words)

    by_command = Trace.open(tmp_path / words[-1])
    assert by_command.steps.collect().equals(Trace.open(run.out).steps.collect())


def test_what_was_run_before_is_not_run_again_however_it_is_typed(
    fixed: tuple[WhatIfs, Run],
) -> None:
    asked, first = fixed

    assert asked.start("--variant=after") is first
    assert asked.of("  after ") is first
    assert asked.of("order-only") is None
    assert asked.last is first


def test_another_run_is_refused_in_a_line_while_one_is_under_way(asked: WhatIfs) -> None:
    first = asked.start(LONG)

    with pytest.raises(ConfigError, match="is still being run, and one is run at a time; wait"):
        asked.start("after")
    assert asked.under_way is first


def test_a_run_that_is_cancelled_ends_its_process_and_leaves_nothing(asked: WhatIfs) -> None:
    run = asked.start(LONG)
    asked.cancel()

    assert run.failed == CANCELLED
    assert run.process is not None
    run.process.wait(PATIENCE_S)
    assert asked.under_way is None
    again = until_over(asked, asked.start("after"))
    assert again.came
    assert sorted(each.name for each in run.out.parent.iterdir()) == [again.out.name]


@slow
def test_closing_ends_what_is_under_way(asked: WhatIfs) -> None:
    run = asked.start(LONG)
    asked.close()

    assert run.process is not None
    run.process.wait(PATIENCE_S)


def test_a_process_ends_with_the_one_that_started_it_whatever_ended_that(
    sample_traces: Path, tmp_path: Path
) -> None:
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-m', {CHILD!r}, *sys.argv[1:]],"
        " start_new_session=True)\n"
        "time.sleep(600)\n"
    )
    given = [str(sample_traces / stories.BEFORE), "requests=4000", str(tmp_path / "out.trace")]
    with subprocess.Popen([sys.executable, "-c", code, *given], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert _said(parent.stdout.readline()).came is None, "its run is under way"
        parent.send_signal(signal.SIGKILL)
        rest = parent.stdout.readlines()  # until the other process has ended as well

    assert not [line for line in rest if line.endswith(b"\n") and _said(line).came]


def _said(line: bytes) -> Said:
    return msgspec.json.decode(line, type=Said)


def test_where_nothing_can_be_written_a_line_says_so_and_it_can_be_asked_again(
    asked: WhatIfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert "No such file or directory" in asked.start("after").failed

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    again = asked.start("after")
    assert not again.failed
    assert asked.under_way is again


def test_a_full_disk_is_said_in_a_line(asked: WhatIfs, monkeypatch: pytest.MonkeyPatch) -> None:
    started_as(monkeypatch, "-c", ON_A_FULL_DISK)
    run = until_over(asked, asked.start("after"))

    assert run.failed
    assert "\n" not in run.failed
    assert "bug" not in run.failed
    assert not run.out.exists()


def test_a_run_under_way_says_what_it_is_at_and_for_how_long(asked: WhatIfs) -> None:
    now_s = 100.0
    asked.clock = lambda: now_s
    run = asked.start(LONG)
    run.what, run.done, run.total = "COR001", 3, 79

    assert lines(run_told(run, 103.4))[-1] == "COR001 3 of 79 · 3 s"
    asked.cancel()
    assert lines(run_told(run, 103.4))[-1] == CANCELLED
    assert ended(run).endswith(f": {CANCELLED}")


def test_a_process_that_ends_without_a_result_is_a_failure(
    asked: WhatIfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    started_as(monkeypatch, "-c", "print('not JSON'); raise SystemExit(3)")

    assert until_over(asked, asked.start("after")).failed == (
        "its process ended with 3 and said nothing"
    )


def test_a_run_of_another_engine_says_that_it_is_re_simulated_and_how_well_it_fits(
    sample_traces: Path,
) -> None:
    asked = WhatIfs(Trace.open(sample_traces / "vllm_crowd.trace"))
    run = until_over(asked, asked.start("max_num_seqs=4"))
    told = "\n".join(lines(run_told(run, 0)))
    asked.close()

    assert "RE-SIMULATED: its arrivals, lengths and limits" in told
    assert "R2 " in told
    assert "% in all" in told
    assert "--engine stepscope --set max_num_seqs=4" in told


@slow
def test_neither_front_imports_the_engine_before_a_run_is_asked_for() -> None:
    code = (
        "import sys, stepscope.app.tui.app, stepscope.app.web.page\n"
        "sys.exit('stepscope.engine.scenarios' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
