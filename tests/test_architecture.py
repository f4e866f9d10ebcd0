"""What `docs/architecture.md` says of the code: a map that is wrong is worse than none."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.house import ROOMS

PAGE = ROOT / "docs" / "architecture.md"


def named() -> set[str]:
    """Paths that the page names."""
    return set(re.findall(r"`([a-z_]+/[\w./-]*)`", PAGE.read_text("utf-8")))


def test_every_place_that_the_map_names_is_there() -> None:
    assert [path for path in named() if not (ROOT / path).exists()] == []


def test_every_folder_of_a_room_is_on_the_map() -> None:
    folders = {
        path.parent.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py")
    }
    told = {path.rstrip("/") for path in named()}
    covered = {*told, *(path.rpartition("/")[0] for path in told)}

    missing = [str(each) for each in folders if len(each.parts) == 2 and str(each) not in covered]

    assert sorted(missing) == []
