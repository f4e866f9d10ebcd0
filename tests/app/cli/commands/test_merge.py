"""`stepscope merge`."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.cli.main import main
from stepscope.ingest.trace import Trace
from tests.ingest.merging.pairs import profiled, recorded
from tests.looped import looped


def test_it_writes_one_trace_and_says_how_the_profile_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path)
    profiled(tmp_path)

    assert main(["merge", str(tmp_path / "run.trace"), str(tmp_path / "profile.json")]) == 0

    out = tmp_path / "run-merged.trace"
    assert Trace.open(out).num_rows("spans") == 25
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("profile of rank 0: its 5 steps are steps 10 to 14; all lie within")
    assert said[1] == f"wrote {out}"


@looped("command", ["blame", "info"])
def test_what_it_writes_is_a_trace_as_any_other(tmp_path: Path, command: str) -> None:
    recorded(tmp_path)
    profiled(tmp_path)
    out = tmp_path / "both.trace"
    main(["merge", str(tmp_path / "run.trace"), str(tmp_path / "profile.json"), "-o", str(out)])

    assert main([command, str(out)]) == 0


def test_it_refuses_what_does_not_fit_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path)
    profiled(tmp_path, (7, 7, 7))

    assert main(["merge", str(tmp_path / "run.trace"), str(tmp_path / "profile.json")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "does not fit the recording" in line
    assert not (tmp_path / "run-merged.trace").exists()


def test_it_does_not_write_over_what_it_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path)
    profiled(tmp_path)
    run = str(tmp_path / "run.trace")

    assert main(["merge", run, str(tmp_path / "profile.json"), "-o", run]) == 2
    assert "the output would overwrite an input" in capsys.readouterr().err


def test_a_recording_is_no_profile_of_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path)
    recorded(tmp_path, name="other.trace")

    assert main(["merge", str(tmp_path / "run.trace"), str(tmp_path / "other.trace")]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "other.trace: it is no profile: no span of a profiler is in it" in line
    assert not (tmp_path / "run-merged.trace").exists()
