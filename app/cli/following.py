"""The option of the fronts that follow a recording in progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def follows(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option `--follow`."""
    return click.option(
        "--follow/--no-follow", default=True, show_default=True,
        help="Follow a recording that is in progress, or open it once as far as it goes.",
    )(command)  # fmt: skip
