"""How far reading has come, as it is told to whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""Takes what is being done, how much of it is done, and how much there is, where that is known."""
