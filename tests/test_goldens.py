"""The script that holds what the command prints against what it printed before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import goldens
from tests.conftest import ROOT


def written(folder: Path, text: str) -> Path:
    (folder / "a.trace").mkdir(parents=True)
    (folder / "a.trace" / "info.txt").write_text(text)
    return folder


def test_outputs_that_are_the_same_compare_as_the_same(tmp_path: Path) -> None:
    one, other = written(tmp_path / "1", "exit 0\n"), written(tmp_path / "2", "exit 0\n")

    assert goldens.main(["compare", str(one), str(other)]) == 0


def test_an_output_that_differs_is_shown_as_a_diff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = written(tmp_path / "1", "rows 1\n"), written(tmp_path / "2", "rows 2\n")

    assert goldens.main(["compare", str(one), str(other)]) == 1

    shown = capsys.readouterr().out
    assert "-rows 1\n+rows 2\n" in shown
    assert "1 outputs differ" in shown


def test_an_output_that_only_one_side_has_differs(tmp_path: Path) -> None:
    one, other = written(tmp_path / "1", "exit 0\n"), tmp_path / "2"

    assert goldens.main(["compare", str(one), str(other)]) == 1


def test_every_sample_trace_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    assert {path.name for path in goldens.samples()} == {
        path.name
        for path in (ROOT / "sample_traces").iterdir()
        if path.suffix not in {".py", ".md"} and path.name != "__pycache__"
    }


def test_rows_are_taken_sorted_one_on_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    end, *lines = goldens.rows(goldens.samples()[0], "lifecycle").splitlines()

    assert end == "exit 0"
    assert len(lines) == 180
    assert lines == sorted(lines)


def test_an_output_names_no_folder_of_this_machine() -> None:
    told = f"{ROOT}/sample_traces/a.trace, {ROOT.parent}/shared/data/b.log"

    assert goldens.without_place(told) == "/sample_traces/a.trace, ../shared/data/b.log"
