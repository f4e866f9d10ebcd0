"""The option of the fronts that follow a recording in progress, and what there is to follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stepscope.app.live.follower import Follower
    from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class Followed:
    """A recording in progress, and what there was of it first."""

    follower: Follower
    first: Trace


def follows(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option `--follow`."""
    return click.option(
        "--follow/--no-follow", default=True, show_default=True,
        help="Follow a recording that is in progress, or open it once as far as it goes.",
    )(command)  # fmt: skip


def followed_in(path: Path) -> Followed | None:
    """Follow what is being recorded at a path; None where nothing is."""
    from stepscope.ingest.live.growing_trace import is_recording

    if not path.is_dir() or not is_recording(path):
        return None
    from stepscope.app.live.follower import Follower

    follower = Follower(path)
    follower.refresh()
    return Followed(follower, follower.look().trace)
