"""Marks outlive a session, and a damaged file of them is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.debug.debugger.marks import Marks
from stepscope.app.debug.moments import Position
from stepscope.ingest.errors import ConfigError, WriteError

HERE = Position(0, 3, None, 300)


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    return tmp_path


def test_a_mark_is_there_in_the_next_session() -> None:
    Marks(Path("run.trace")).put("storm", HERE)

    assert Marks(Path("run.trace")).get("storm") == HERE
    assert not Marks(Path("other.trace")).all


def test_a_mark_that_was_dropped_is_gone() -> None:
    marks = Marks(Path("run.trace"))
    marks.put("storm", HERE)
    marks.drop("storm")

    assert not Marks(Path("run.trace")).all


def test_a_damaged_file_is_one_line_with_its_name(state: Path) -> None:
    Marks(Path("run.trace")).put("storm", HERE)
    file = next(state.rglob("*.json"))
    file.write_text("{")

    with pytest.raises(ConfigError, match=f"{file.name}: marks cannot be read"):
        Marks(Path("run.trace")).get("storm")


def test_where_nothing_can_be_written_it_is_said(state: Path) -> None:
    (state / "marks").write_text("a file")

    with pytest.raises((WriteError, ConfigError), match="marks cannot be"):
        Marks(Path("run.trace")).put("storm", HERE)


@pytest.mark.parametrize("said", ["off", "OFF"])
def test_where_it_is_turned_off_marks_live_as_long_as_the_session(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", said)
    marks = Marks(Path("run.trace"))
    marks.put("storm", HERE)

    assert marks.get("storm") == HERE
    assert marks.file is None
