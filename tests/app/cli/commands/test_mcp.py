"""What is wrong with how the server is started is one line, and its own exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.looped import looped
from tests.tiers import slow

COMMAND = [sys.executable, "-m", "stepscope.app", "mcp"]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        input="",
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


@slow
@looped(
    ("words", "says"),
    [
        (("nothing",), "nothing: there is no such folder"),
        (("file",), "file: it is a file, not a folder"),
    ],
)
def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "file").write_text("")

    ran = run(*words, cwd=tmp_path)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"stepscope: {says}")
    assert len(ran.stderr.splitlines()) == 1


@looped(
    ("words", "says"),
    [((), "Missing argument"), ((".", "--port", "8060"), "--port is for --http"),
     ((".", "--http", "--port", "99999"), "--port")],
)  # fmt: skip
def test_wrong_usage_is_told(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    ran = run(*words, cwd=tmp_path)

    assert ran.returncode == 2
    assert says in ran.stderr


def test_without_the_sdk_it_says_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None; "
        "from stepscope.app.cli.main import main; sys.exit(main(['mcp', '.']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 2
    assert ran.stderr == (
        "stepscope: the server for assistants needs the package mcp; pip install 'stepscope[mcp]'\n"
    )
