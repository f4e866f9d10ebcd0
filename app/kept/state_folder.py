"""Where we keep what a user told us."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FOLDER = "STEPSCOPE_STATE"
OFF = "off"


def state_folder() -> Path | None:
    """The user's folder for states; None where STEPSCOPE_STATE is `off`, or without a home."""
    said = os.environ.get(FOLDER, "").strip()
    if said.lower() == OFF:
        return None
    if said:
        return Path(said)
    shared = Path(os.environ.get("XDG_STATE_HOME", ""))
    with suppress(RuntimeError):
        home = shared if shared.is_absolute() else Path.home() / ".local" / "state"
        return home / "stepscope"
    return None
