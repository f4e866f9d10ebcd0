"""Lines of a script: comments and blanks ask nothing, and a line without an end is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.app.cli.prompt.lines import LONGEST, commands_of, of_script
from stepscope.ingest.errors import ConfigError


def test_comments_and_blanks_ask_nothing(tmp_path: Path) -> None:
    script = tmp_path / "story.txt"
    script.write_text("# why\n\n  step 2 \r\n")

    assert list(commands_of(of_script(script))) == ["step 2"]


def test_a_line_that_nobody_typed_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "story.txt"
    script.write_text("x" * (LONGEST + 1))

    with pytest.raises(ConfigError, match="characters"):
        of_script(script)
