"""What is given twice on a command line: the last does not silently win over the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import click


def given_twice(names: Iterable[str]) -> str | None:
    """Return the first of `names` that is there more than once, None where none is."""
    return next((name for name, number in Counter(names).items() if number > 1), None)


holds_slo = click.option(
    "--slo", metavar="LIMITS",
    help="Say which requests meet these limits, how many a second do (goodput), and what the "
         "others lost most time to, as in ttft=500ms,tpot=50ms. Limits: ttft, tpot, latency; "
         "engine_ttft and engine_tpot of tokens as the engine sampled them.",
)  # fmt: skip
"""Give a command the option --slo, which `analyzers.summary.slo.slo_of` reads."""


class Duration(click.FloatRange):
    """A number of seconds above 0; what is not a number would never be over."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number, or fail with what is wrong with it."""
        seconds = float(super().convert(value, param, ctx))
        if isnan(seconds):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return seconds


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


def two_of(traces: tuple[Path, ...]) -> tuple[Path, Path]:
    """The two traces that are to be looked at side by side; a third is refused."""
    if len(traces) != 2:
        raise click.UsageError("one trace is looked at, or two side by side.")
    return traces[0], traces[1]
