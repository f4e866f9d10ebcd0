"""The traces that were opened last: for the fronts to open them again."""

from __future__ import annotations

import os
from pathlib import Path

from stepscope.app.kept.text_list import TextList

MOST = 20
_PATHS = TextList("recent.json", MOST)


def recent() -> list[Path]:
    """What was opened last, the latest first, as far as it is still there."""
    return [path for path in map(Path, _PATHS.all()) if path.exists()]


def opened(path: Path) -> None:
    """Put a trace before the others; where nothing can be kept, nothing is."""
    _PATHS.put_first(os.fsdecode(path.resolve()))
