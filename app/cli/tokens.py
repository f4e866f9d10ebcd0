"""The options that say which token opens the page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from stepscope.ingest.errors import ConfigError


def needs_token(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--token` and `--no-token`, as one argument `token`.

    It is the user's token, True for a random one, or False for none.
    """

    @click.option(
        "--token", "own_token", envvar="STEPSCOPE_TOKEN", show_envvar=True,
        help="A token of one's own, of 16 characters or more. Other users can read command lines, "
        "not the environment.  [default: a random one at each start]",
    )  # fmt: skip
    @click.option(
        "--no-token", is_flag=True,
        help="Ask for no token. Unsafe on a shared machine: all its users can then read the trace "
        "and open every file that you can read.",
    )  # fmt: skip
    @wraps(command)
    def with_token(*args: Any, own_token: str | None, no_token: bool, **options: Any) -> Any:
        return command(*args, token=_token(own_token, no_token=no_token), **options)

    return with_token


def _token(own_token: str | None, *, no_token: bool) -> str | bool:
    if no_token and own_token is not None:
        todo = "leave out --no-token, or --token and STEPSCOPE_TOKEN"
        raise ConfigError("--no-token contradicts a token", todo=todo)
    return not no_token if own_token is None else own_token
