"""Progress is drawn for people and kept from programs."""

from __future__ import annotations

import pytest

from stepscope.app.cli.progress import progress


class FakeClock:
    """A clock that moves a second every time it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_progress_is_silent_where_no_person_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(FakeClock()) as report:
        report("reading", 1, 2)

    assert capsys.readouterr().err == ""


def test_progress_shows_a_share_and_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    with progress(FakeClock()) as report:
        report("reading\x1b", 1, 2)

    drawn = capsys.readouterr().err
    assert "reading·" in drawn
    assert "50%" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_quick_work_draws_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    with progress(lambda: 0.0) as report:
        report("reading", 1, 2)

    assert capsys.readouterr().err == ""
