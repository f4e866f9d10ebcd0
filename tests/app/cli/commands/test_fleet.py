"""`stepscope fleet`: thousands of traces into an archive, told in a few lines."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.app.cli.conftest import Command
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.looped import looped
from tests.tiers import slow

PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""
GOES_NO_FURTHER = """
import sys
from stepscope.analyzers.fleet.archive.row_journal import RowJournal
from stepscope.app.cli import main

append = RowJournal.append
def append_and_wait(journal, record):
    append(journal, record)
    print("finished", flush=True)
    sys.stdin.readline()
RowJournal.append = append_and_wait
raise SystemExit(main())
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rules of few families, so that little is checked."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "stepscope.toml").write_text('select = ["COL", "TRC"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def runs(project: Path) -> Path:
    """Two jobs, one of which has a file that is no profile, and a file by itself."""
    folder = project / "runs"
    folder.mkdir()
    write_job(folder / "one", job(2, num_steps=3), Look(), Look(swapped=4))
    write_job(folder / "two", job(2, num_steps=3, seed=1), Look(), Look())
    (folder / "two" / "rank1.json").write_bytes(b"\x00\x01 nothing that anybody wrote")
    (folder / "note").write_text("nothing\n")
    return folder


@contextmanager
def first_finished() -> Iterator[subprocess.Popen[str]]:
    """The command, which goes no further once its first trace is finished."""
    with subprocess.Popen(
        [sys.executable, "-c", GOES_NO_FURTHER, "fleet", "runs", "--to", "archive",
         "--workers", "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "finished\n"
        try:
            yield process
        finally:
            process.kill()


def digest_in(out: str) -> str:
    found = re.search(r"^digest +([0-9a-f]{64})$", out, re.MULTILINE)
    assert found, out
    return found[1]


@slow
def test_by_one_worker_and_by_two_an_archive_is_the_same(stepscope: Command, runs: Path) -> None:
    one = stepscope("fleet", runs, "--to", "one.archive", "--workers", 1)
    two = stepscope("fleet", runs, "--to", "two.archive", "--workers", 2)

    assert (one.code, two.code) == (3, 3)
    assert digest_in(one.out) == digest_in(two.out)
    assert "5 files of 3 traces" in one.out
    assert "checked     2" in one.out
    assert "unreadable  2 files" in one.out
    assert {name for name in ("note", "rank1.json") if name in one.err} == {"note", "rank1.json"}

    query = "select trace from findings where code = 'COL001'"
    found = stepscope("sql", "two.archive", query, "--format", "csv")
    assert found.out.split() == ["trace", str(runs / "one")]

    again = stepscope("fleet", runs, "--to", "one.archive", "--workers", 1)
    assert again.code == 0
    assert "3 known before" in again.out
    assert digest_in(again.out) == digest_in(one.out)


def test_a_run_that_is_killed_loses_nothing_and_leaves_no_worker(
    stepscope: Command, runs: Path, project: Path
) -> None:
    for number in range(3):
        shutil.copytree(runs / "one", runs / f"more{number}")
        (runs / f"more{number}" / f"name{number}").touch()
    with first_finished() as process:
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()

    before = stepscope("sql", "archive", "select key from traces", "--format", "csv").out.split()
    assert len(before) == 2
    ends_s = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}/exe").exists() for pid in workers):
        assert time.monotonic() < ends_s, "a worker goes on without the command"
        time.sleep(0.02)

    shutil.rmtree(runs / "two")
    (project / "stepscope.toml").write_text('select = ["COL", "TRC"]\n')
    after = stepscope("fleet", runs, "--to", "archive", "--workers", 1)
    assert "1 known before" in after.out


@slow
def test_compacting_says_what_became_of_the_files(stepscope: Command, runs: Path) -> None:
    stepscope("fleet", runs / "one", "--to", "archive", "--workers", 1)
    stepscope("fleet", runs / "note", "--to", "archive", "--workers", 1)

    kept = stepscope("fleet", "compact", "archive", "--keep", "30d")

    assert (kept.code, kept.out) == (0, "archive: 5 files before, 4 now, 0 partitions gone\n")


@looped(
    ("words", "code", "said"),
    [
        (["fleet", "none"], 2, "Missing option '--to'"),
        (["fleet", "none", "--to", "a"], 2, "none: nothing is found there; name files"),
        (["fleet", "compact", "none"], 2, "none: it is no archive of stepscope fleet"),
        (["fleet", "compact"], 2, "stepscope fleet compact ARCHIVE"),
        (["fleet", "compact", "a", "--keep", "soon"], 2, "'soon' is no number of days, like 30d"),
        (["fleet", "runs", "--to", "a", "--keep", "30d"], 2, "--keep is of fleet compact"),
        (["fleet", "runs", "--to", "runs"], 2, "runs: it is no archive, and something is in it"),
        (["fleet", "runs", "--to", "a", "--scheduler", "tcp://h.example:1"], 2, "use tls://"),
        (["fleet", "s3://bucket/none", "--to", "a"], 2, "s3://bucket/none: "),
    ],
)
@pytest.mark.usefixtures("runs")
def test_what_is_wrong_is_one_line(
    stepscope: Command, words: list[str], code: int, said: str
) -> None:
    run = stepscope(*words)

    assert run.code == code
    assert said in run.err
    assert len(run.err.strip().splitlines()) <= 4  # click says how the command is used before


@slow
@pytest.mark.usefixtures("runs")
def test_ctrl_c_ends_it_and_what_was_finished_is_there(project: Path) -> None:
    with first_finished() as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert said.strip() == "stepscope: interrupted"
    assert list((project / "archive" / "files").glob("date=*/*.parquet"))
