"""What is given twice on a command line: the last does not silently win over the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import click


def given_twice(names: Iterable[str]) -> str | None:
    """Return the first of `names` that is there more than once, None where none is."""
    return next((name for name, number in Counter(names).items() if number > 1), None)


def refuse_repeats(command: click.Command, ctx: click.Context, words: Sequence[str]) -> None:
    """Raise UsageError where `words` give an option twice that `command` takes once."""
    try:
        _, _, order = command.make_parser(ctx).parse_args(list(words))
    except click.UsageError:
        return  # the command itself says what is wrong with them
    if again := given_twice(each.opts[0] for each in order if _is_taken_once(each)):
        raise click.UsageError(f"Option '{again}' is given more than once.", ctx)


def _is_taken_once(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.multiple and not parameter.is_flag
