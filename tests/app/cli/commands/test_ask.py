"""`stepscope sql`, `convert` and `explain`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.check.registry import RULES
from stepscope.ingest.bounded import run_apart as query_apart
from stepscope.ingest.query import MOST_ROWS, Bounds
from stepscope.ingest.storage.saving import save_trace
from stepscope.ingest.trace import Trace
from tests.app.cli.conftest import Command
from tests.ingest.perfetto_files import shown_by
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

READS = (
    "select * from read_csv('secret.csv')",
    "select * from READ_PARQUET ('x')",
    'select * from "read_ipc"(1)',
)
NUM_ALIKE = MOST_ROWS + 1
ALIKE = "select count(*) from steps a join steps b on a.kind = b.kind"
COUNT = "select kind, count(*) as steps from steps group by kind order by kind"

PATIENCE_S = 180
"""A machine may be busy with other things; the query takes longer where nothing stops it."""


@slow
def test_sql_answers_as_a_table(stepscope: Command, starved: Path) -> None:
    run = stepscope("sql", starved, COUNT)

    assert run.code == 0
    assert run.out.splitlines()[0].split() == ["kind", "steps"]


def test_sql_answers_as_csv_and_json_alike(stepscope: Command, starved: Path) -> None:
    as_csv = stepscope("sql", starved, COUNT, "--format", "csv")
    as_json = stepscope("sql", starved, COUNT, "--format", "json")

    rows = list(csv.DictReader(io.StringIO(as_csv.out)))
    assert [{**row, "steps": int(row["steps"])} for row in rows] == json.loads(as_json.out)


@looped(
    "query",
    ["", "select", "select * from stepz", "select kindd from steps", "drop table steps"],
)
def test_a_query_that_does_not_run_is_one_clear_line(
    stepscope: Command, starved: Path, query: str
) -> None:
    run = stepscope("sql", starved, query)

    assert run.code == 2
    assert len(run.err.splitlines()) == 1


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many steps of one kind, whose join by it makes 1e10 rows."""
    path = tmp_path_factory.mktemp("alike") / "alike.trace"
    steps = [{"step": step, "ts_ns": step, "kind": "decode"} for step in range(NUM_ALIKE)]
    save_trace(trace_of(steps=steps), path)
    return path


@slow
def test_a_query_is_given_up_after_the_time_that_it_was_given(
    stepscope: Command, alike: Path
) -> None:
    run = stepscope("sql", alike, ALIKE, "--timeout", "0.5")

    assert run.code == 2
    assert run.err.startswith("stepscope: the query was given up after 0.5 s; ask for fewer rows")


@slow
def test_a_query_has_no_more_memory_than_it_was_given(stepscope: Command, alike: Path) -> None:
    run = stepscope("sql", alike, ALIKE, "--memory", "1", "--timeout", "170")

    assert run.code == 2
    assert "it makes more than has room in 1 GiB of memory" in run.err


def test_a_query_has_the_time_of_the_page_where_none_was_given(
    stepscope: Command, starved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[Bounds] = []

    def answer(_trace: Trace, _query: str, used: Bounds) -> pl.DataFrame:
        bounds.append(used)
        return pl.DataFrame()

    monkeypatch.setattr(Trace, "sql", answer)

    stepscope("sql", starved, COUNT)
    stepscope("sql", starved, COUNT, "--timeout", "inf", "--memory", "2")

    assert bounds == [Bounds(rows=None), Bounds(None, None, 2 << 30)]


def test_a_profile_that_is_not_cached_is_joined_with_itself(
    stepscope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    spans = [
        {"ph": "X", "name": f"s{at}", "pid": 1, "tid": 1, "ts": at, "dur": 40 - 2 * at}
        for at in range(9)
    ]
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"traceEvents": spans}))
    query = "select count(*) as pairs from spans p join spans c on c.parent = p.span"

    run = stepscope("sql", profile, query, "--format", "json")

    assert (run.code, run.err) == (0, "")
    assert json.loads(run.out) == [{"pairs": 8}]


@looped("form", ["table", "csv", "json"])
def test_columns_of_one_name_are_numbered_in_every_format(
    stepscope: Command, starved: Path, form: str
) -> None:
    query = "select a.ts_ns, b.ts_ns from steps a join steps b on a.step = b.step limit 1"

    first = stepscope("sql", starved, query, "--format", form).out.splitlines()[0]

    assert re.findall(r"ts_ns\w*", first) == ["ts_ns", "ts_ns_2"]


def test_every_row_is_printed_however_many_there_are(stepscope: Command, alike: Path) -> None:
    run = stepscope("sql", alike, "select step from steps", "--format", "csv")

    assert len(run.out.splitlines()) == 1 + NUM_ALIKE


@slow
def test_an_interrupt_ends_a_query_at_once_and_says_so(alike: Path) -> None:
    command = [sys.executable, "-m", "stepscope.app", "sql", str(alike), ALIKE]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not any(map(is_answering, started := children.read_text().split())):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)

    assert (process.returncode, said.strip()) == (130, "stepscope: interrupted")
    last = time.monotonic() + PATIENCE_S
    while any(map(is_running, started)):
        assert time.monotonic() < last, "the query goes on without the command"
        time.sleep(0.02)


def is_answering(process: str) -> bool:
    """Whether a process is that of a query, and its parent has long since returned from its start.

    What is interrupted while it starts a process does not end that.
    """
    folder = Path(f"/proc/{process}")
    try:
        is_of_query = query_apart.NAME in (folder / "cmdline").read_text()
        return is_of_query and "polars" in (folder / "maps").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_running(process: str) -> bool:
    """Whether a process does anything; one that has ended may be listed until it is reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@looped("query", READS)
def test_a_query_reads_no_file_of_this_machine(
    stepscope: Command, starved: Path, query: str
) -> None:
    run = stepscope("sql", starved, query)

    assert run.code == 2
    assert "is not allowed" in run.err


def test_a_trace_goes_to_chrome_json_and_back(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    out = tmp_path / "starved.json.gz"

    run = stepscope("convert", starved, "-o", out)

    assert run.code == 0
    events = json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    assert events
    assert stepscope("info", out).code == 0


@slow
@looped("name", ["starved.pftrace", "starved.pftrace.gz"])
def test_a_trace_goes_to_perfetto(
    stepscope: Command, starved: Path, tmp_path: Path, name: str
) -> None:
    run = stepscope("convert", starved, "-o", tmp_path / name)

    assert run.code == 0
    assert run.err.endswith(f"wrote {tmp_path / name}\n")
    assert shown_by(tmp_path / name).slices


def test_a_foreign_file_becomes_a_trace_with_the_same_rows(
    stepscope: Command, sample_traces: Path, tmp_path: Path
) -> None:
    source = sample_traces / "torch_profiler_cpu.json.gz"

    run = stepscope("convert", source, "-o", tmp_path / "mine.trace")

    assert run.code == 0
    converted, read = Trace.open(tmp_path / "mine.trace"), Trace.open(source)
    assert converted.spans.collect().equals(read.spans.collect())


def test_a_place_that_cannot_be_written_is_wrong_usage(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    run = stepscope("convert", starved, "-o", tmp_path / "absent" / "out.json")

    assert run.code == 2
    assert "cannot be written" in run.err


@looped("ending", ["json", "pftrace", "trace"])
def test_a_trace_without_rows_is_not_converted_in_silence(
    stepscope: Command, tmp_path: Path, ending: str
) -> None:
    nothing, out = tmp_path / "nothing.json", tmp_path / f"out.{ending}"
    nothing.write_text('{"traceEvents": []}')

    run = stepscope("convert", nothing, "-o", out)

    assert (run.code, len(run.err.splitlines())) == (3, 1)
    assert "nothing was read: no table has a row" in run.err
    assert not out.exists()


def test_an_unknown_ending_is_wrong_usage(
    stepscope: Command, starved: Path, tmp_path: Path
) -> None:
    run = stepscope("convert", starved, "-o", tmp_path / "out.xlsx")

    assert run.code == 2
    assert ".pftrace" in run.err
    assert ".json.gz" in run.err


@looped("code", [rule.code for rule in RULES])
def test_every_rule_explains_itself(stepscope: Command, code: str) -> None:
    page = stepscope("explain", code).out

    assert all(title in page for title in ("What it finds", "Why it hurts", "How to fix"))


def test_an_unknown_code_names_near_ones(stepscope: Command) -> None:
    run = stepscope("explain", "COR0001")

    assert run.code == 2
    assert "COR001" in run.err
