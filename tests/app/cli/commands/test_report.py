"""`stepscope report` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.kept.flags import Flag, Flags
from stepscope.ingest.storage.saving import save_trace
from tests.analyzers.rows import life
from tests.app.cli.conftest import Command
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of one step, of which a report is soon written."""
    path = tmp_path_factory.mktemp("small") / "small.trace"
    step = {"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "decode"}
    save_trace(trace_of(steps=[step], lifecycle=life("req-1", 1, 2, 3)), path)
    return path


@slow
def test_a_report_is_written_and_told_of(stepscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    run = stepscope("report", SAMPLE, "-o", out)

    assert (run.code, run.out, run.err) == (0, "", f"wrote {out}\n")
    assert out.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir()] == ["run.html"]


@slow
def test_a_file_that_is_there_is_overwritten_only_where_that_is_said(
    stepscope: Command, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.html"
    out.write_text("mine")
    refused = stepscope("report", small, "-o", out)

    assert refused.code == 2
    assert "it already exists" in refused.err
    assert out.read_text() == "mine"
    assert stepscope("report", small, "-o", out, "--force").code == 0
    assert "mine" not in out.read_text("utf-8")[:100]


@looped("out", ["", "missing/run.html"])
def test_what_cannot_be_written_is_a_line(
    stepscope: Command, small: Path, tmp_path: Path, out: str
) -> None:
    run = stepscope("report", small, "-o", tmp_path / out)

    assert run.code == 2
    assert len(run.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_read_is_not_overwritten(stepscope: Command, tmp_path: Path) -> None:
    given = tmp_path / "run.json"
    given.write_text("{}")
    run = stepscope("report", given, "-o", given, "--force")

    assert run.code == 2
    assert "would overwrite an input" in run.err


def test_what_cannot_be_read_writes_nothing(stepscope: Command, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\x00\x01\x02")
    run = stepscope("report", tmp_path / "noise", "-o", tmp_path / "run.html")

    assert run.code == 3
    assert not (tmp_path / "run.html").exists()


def test_three_traces_are_too_many(stepscope: Command, small: Path, tmp_path: Path) -> None:
    run = stepscope("report", small, small, small, "-o", tmp_path / "run.html")

    assert run.code == 2
    assert "of one trace, or of two" in run.err


def test_the_flags_that_were_put_on_a_trace_are_in_it_unless_they_are_left_out(
    stepscope: Command, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))
    Flags(small).put("storm", Flag(0, "all of <b>them</b> wait"))
    with_flags, without = tmp_path / "with.html", tmp_path / "without.html"

    assert stepscope("report", small, "-o", with_flags).code == 0
    assert stepscope("report", small, "-o", without, "--no-flags").code == 0

    assert "@storm" in with_flags.read_text("utf-8")
    assert "all of &lt;b&gt;them&lt;/b&gt; wait" in with_flags.read_text("utf-8")
    assert "@storm" not in without.read_text("utf-8")


@slow
def test_an_slo_is_judged_as_blame_does_and_where_none_is_given_it_says_how(
    stepscope: Command, tmp_path: Path
) -> None:
    served = SAMPLE.with_name("fcfs-preemption-before.trace")
    limits = "ttft=500ms,tpot=50ms"
    judged, without = tmp_path / "judged.html", tmp_path / "without.html"

    assert stepscope("report", served, "-o", judged, "--slo", limits).code == 0
    assert stepscope("report", served, "-o", without).code == 0

    blamed = stepscope("blame", served, "--slo", limits).out.splitlines()
    (goodput,) = [line.split("goodput", 1)[1].strip() for line in blamed if "goodput" in line]
    assert goodput in judged.read_text("utf-8")
    assert "Not given. Add --slo ttft=500ms,tpot=50ms" in without.read_text("utf-8")


@slow
def test_a_trace_in_which_nobody_was_served_has_no_slo(stepscope: Command, tmp_path: Path) -> None:
    out = tmp_path / "run.html"
    profile = ROOT / "sample_traces" / "torch_profiler_cpu.json.gz"

    assert stepscope("report", profile, "-o", out).code == 0
    assert "A-slo" not in out.read_text("utf-8")


def test_an_slo_that_says_nothing_is_a_line(
    stepscope: Command, small: Path, tmp_path: Path
) -> None:
    run = stepscope("report", small, "-o", tmp_path / "x.html", "--slo", "ttft=fast")

    assert (run.code, len(run.err.splitlines())) == (2, 1)
    assert list(tmp_path.iterdir()) == []
