"""How often the terminal is drawn at most."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.tiers import slow


@slow
@pytest.mark.parametrize(("given", "used"), [({}, "480"), ({"TEXTUAL_FPS": "20"}, "20")])
def test_frames_follow_each_other_sooner_than_textual_has_them_unless_told(
    given: dict[str, str], used: str
) -> None:
    code = "import stepscope.app.tui.app, textual.screen as s; print(round(1 / s.UPDATE_PERIOD))"
    others = {name: value for name, value in os.environ.items() if name != "TEXTUAL_FPS"}
    told = subprocess.run(
        [sys.executable, "-c", code], env=others | given, capture_output=True, text=True, check=True
    )

    assert told.stdout.strip() == used
