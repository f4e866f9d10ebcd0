"""`stepscope trend`: metrics over summaries and traces, where they change, and bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stepscope.analyzers.many_runs.trace_row import VERSION, table_of
from tests.app.cli.conftest import Command
from tests.looped import looped
from tests.tiers import slow

HOSTILE = "</script><script>owned=1</script><b>*x*</b>`|\x1b[31m"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(num: int = 24, slower_from: int = 12, **others: Any) -> list[dict[str, Any]]:
    random = np.random.default_rng(4)
    return [
        {
            "summary_version": VERSION, "trace": f"out/night-{place:02}.trace", "producer": "vllm",
            "began_ns": 1_790_000_000_000_000_000 + place, "steps": 1_000,
            "makespan_ns": int(random.normal(9e9, 1e7)),
            "ttft_p99_ns": int(random.normal(150e6 if place >= slower_from else 120e6, 2e6)),
            "preemptions": int(random.poisson(2)),
        } | others
        for place in range(num)
    ]  # fmt: skip


@pytest.fixture
def nightly(project: Path) -> Path:
    table_of(rows()).write_parquet(project / "nightly.parquet")
    return project / "nightly.parquet"


def test_it_names_the_runs_between_which_a_level_changed(stepscope: Command, nightly: Path) -> None:
    run = stepscope("trend", nightly)

    assert run.code == 0
    [change] = re.findall("◆ (.*)", run.out)
    assert re.fullmatch(
        r"ttft_p99_ns: from 1(19|20|21) ms to 1(49|50|51) ms \(\+2\d\.\d%\) between "
        r"out/night-11.trace and out/night-12.trace; chance 0\.\d\d%", change
    )  # fmt: skip
    assert "not recorded by any run: tokens_per_s, goodput" in run.out
    assert run.out.splitlines()[-1].startswith("1 change point; where nothing changed, at most 5%")


@slow
@looped("ending", ["parquet", "json", "csv"])
def test_each_file_that_summary_writes_is_read(
    stepscope: Command, sample_traces: Path, ending: str
) -> None:
    name = sample_traces / "fcfs-preemption-after.trace"
    assert stepscope("summary", name, "-o", f"one.{ending}").code == 0

    run = stepscope("trend", f"one.{ending}", "--format", "json")

    row = stepscope("trend", name, "--format", "json")
    assert (run.code, json.loads(run.out)) == (0, json.loads(row.out))


@slow
def test_a_folder_of_traces_is_summed_up_first(stepscope: Command, sample_traces: Path) -> None:
    Path("runs").mkdir()
    for each in ("before", "after"):
        Path("runs", each).symlink_to(sample_traces / f"fcfs-preemption-{each}.trace")

    run = stepscope("trend", "runs", "--format", "json", "--metric", "preemptions", "--together")

    [group] = json.loads(run.out)["groups"]
    assert [point["key"] for point in group["points"]] == ["runs/after", "runs/before"]
    assert group["metrics"][0]["values"][1] == 230


def test_a_trace_that_cannot_be_read_is_named_and_the_others_are_shown(
    stepscope: Command, sample_traces: Path
) -> None:
    Path("runs", "broken").mkdir(parents=True)
    Path("runs", "broken", "manifest.json").write_text("{")
    Path("runs", "whole").symlink_to(sample_traces / "fcfs-preemption-after.trace")

    run = stepscope("trend", "runs")

    assert run.code == 3
    assert "runs/broken" in run.err
    assert len(run.err.splitlines()) == 1
    assert "1 run" in run.out


def test_summaries_of_a_folder_go_before_the_traces_beside_them(
    stepscope: Command, nightly: Path
) -> None:
    (nightly.parent / "a.trace").mkdir()
    (nightly.parent / "a.trace" / "manifest.json").write_text("{}")

    run = stepscope("trend", nightly.parent)

    assert run.out.startswith("24 runs")
    assert "1 trace beside summaries left out" in run.err


def test_runs_of_one_commit_are_one_point_with_their_number(
    stepscope: Command, nightly: Path
) -> None:
    commits = [f"c{place // 2}" for place in range(24)]
    pl.read_parquet(nightly).with_columns(commit=pl.Series(commits)).write_ndjson("runs.json")

    run = stepscope("trend", "runs.json", "--by", "commit", "--metric", "ttft_p99_ns")

    assert "24 runs, 12 points" in run.out
    assert "between c5 (2 runs) and c6 (2 runs)" in run.out


def test_any_column_of_numbers_is_a_metric(stepscope: Command) -> None:
    own = [{**row, "joules": row["ttft_p99_ns"] / 1e6} for row in rows()]
    pl.DataFrame(own).write_csv("own.csv")

    run = stepscope("trend", "own.csv", "--metric", "joules", "--format", "json")

    [metric] = json.loads(run.out)["groups"][0]["metrics"]
    [change] = metric["changes"]
    assert (metric["metric"], change["key"]) == ("joules", "out/night-12.trace")
    assert change["chance"] <= 0.05


@looped("form", ["text", "json", "markdown"])
def test_text_of_a_trace_is_neither_control_nor_markup(stepscope: Command, form: str) -> None:
    table_of(rows(producer=HOSTILE, trace=HOSTILE)).write_parquet("hostile.parquet")

    run = stepscope("trend", "hostile.parquet", "--format", form)

    assert run.code == 0
    assert "\x1b" not in run.out
    if form == "markdown":
        assert not {"<", "`"} & set(run.out)


def test_the_page_runs_its_own_scripts_alone_and_holds_text_as_text(stepscope: Command) -> None:
    table_of(rows(producer=HOSTILE, trace=HOSTILE)).write_parquet("hostile.parquet")

    run = stepscope("trend", "hostile.parquet", "-o", "trend.html")

    page = Path("trend.html").read_text("utf-8")
    assert (run.code, run.out) == (0, "")
    assert "1 change point" in run.err
    assert "<script>owned" not in page
    assert "default-src 'none'; script-src 'sha256-" in page


def test_a_page_that_is_there_is_overwritten_only_with_force(
    stepscope: Command, nightly: Path
) -> None:
    Path("trend.html").touch()

    assert stepscope("trend", nightly, "-o", "trend.html").code == 2
    assert stepscope("trend", nightly, "-o", "trend.html", "--force").code == 0


BAD_FILES = {
    "a.parquet": (b"PAR1 and no more", "cannot be read as parquet"),
    "b.csv": (b"", "cannot be read as csv"),
    "c.csv": (b"a,b\n1,2\n", "no column summary_version and no column trace"),
    "d.csv": (b"summary_version,trace\n", "there is no row in it"),
    "e.csv": (b"summary_version,trace,steps\n1,a,many\n", "could not parse `many`"),
    "f.json": (b'{"summary_version": 1, "trace": "a"}\n{"summa', "cannot be read as json"),
    "g.json": (b'{"summary_version": 99, "trace": "a"}\n', "those of version 99"),
    "h.json": (b"[" * 100_000, "h.json"),
    "i.parquet": (None, "no such file"),
}


@looped("name", BAD_FILES)
def test_what_is_no_summary_is_one_clear_line(stepscope: Command, name: str) -> None:
    content, said = BAD_FILES[name]
    if content is not None:
        Path(name).write_bytes(content)

    run = stepscope("trend", name)

    assert run.code == 3
    assert said in run.err
    assert len(run.err.splitlines()) == 1


def test_beside_one_that_is_no_summary_the_others_are_shown(
    stepscope: Command, nightly: Path
) -> None:
    Path("bad.csv").write_text("a,b\n1,2\n")

    run = stepscope("trend", nightly, "bad.csv")

    assert run.code == 3
    assert "bad.csv: it is no summary" in run.err
    assert run.out.startswith("24 runs")


def test_an_empty_folder_is_said_to_be_empty(stepscope: Command) -> None:
    Path("none").mkdir()

    run = stepscope("trend", "none")

    assert run.code == 3
    assert "none: the folder is empty" in run.err


@looped(
    ("options", "said"),
    [
        (["--metric", "speed"], "there is no column speed"),
        (["--metric", "trace"], "column trace holds no numbers"),
        (["--metric", "steps", "--metric", "steps"], "given more than once"),
        (["--by", "commit"], "there is no column commit"),
        (["--by", "scenario"], "24 of 24 runs say nothing in column scenario"),
        (["-o", "trend.pdf"], "ends in .html"),
        (["-o", "nowhere/trend.html"], "cannot be written"),
    ],
)
def test_what_is_asked_for_and_not_there_is_wrong_usage(
    stepscope: Command, nightly: Path, options: list[str], said: str
) -> None:
    run = stepscope("trend", nightly, *options)

    assert run.code == 2
    assert said in run.err
