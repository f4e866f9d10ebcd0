"""Pages that are made from code, by where they lie below docs/: `python -m tests.pages`.

They are committed, so that they can be read where the code is; a test fails when one is stale.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.conftest import ROOT
from tests.pages.commands import commands_page
from tests.pages.faults import faults_page
from tests.pages.python import python_page
from tests.pages.tables import tables_page

FOLDER = ROOT / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "faults.md": faults_page,
    "python.md": python_page,
    "tables.md": tables_page,
}


def write() -> None:
    """Write every page again."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
