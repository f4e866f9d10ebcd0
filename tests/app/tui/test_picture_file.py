"""What is shown as a picture in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from stepscope.app.tui.picture_file import saved_new
from tests.app.tui.stage import RESULT, WIDE, conflict_trace, opened, press


def told(pilot: Pilot[None]) -> list[str]:
    return [each.message for each in pilot.app._notifications]  # run_test shows none


async def test_p_saves_what_is_shown_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "n", "P")

        [picture] = tmp_path.iterdir()
        assert picture.suffix == ".svg"
        assert "COR001" in picture.read_text("utf-8")
        assert told(pilot) == [f"wrote {picture}"]


async def test_where_nothing_can_be_written_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.setattr(Path, "cwd", lambda: folder)
    folder.rmdir()
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "P")

        assert told(pilot) == ["the picture cannot be written: No such file or directory"]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    names = [saved_new(tmp_path, "run.trace.svg", text).name for text in ("one", "two")]

    assert names == ["run.trace.svg", "run.trace-2.svg"]
    assert (tmp_path / names[0]).read_text() == "one"


def test_what_a_trace_is_called_leads_nowhere_else(tmp_path: Path) -> None:
    names = ("../../etc/passwd.svg", "\x1b[31m.svg", "/.svg", f"{5000 * 'x'}.svg")

    files = {saved_new(tmp_path, name, "text") for name in names}

    assert len(files) == len(names)
    assert {file.parent for file in files} == {tmp_path}
    assert {*tmp_path.iterdir()} == files
