"""Tables on a terminal or in a pipe: aligned, plain, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from stepscope.app.printable import plain
from stepscope.app.widths import aligned, fit, width_of

WIDEST = 60
"""Cells of a terminal that a value may take: one long name would push all others away."""


def format_cell(value: object) -> str:
    """Return `value` as a reader expects it: thousands separated, floats short, null as `-`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1 or value == 0 else f"{value:.3g}"
    text = plain(str(value))
    return text if width_of(text) <= WIDEST else fit(text, WIDEST)


def format_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table: a header, a rule and a line a row."""
    body = [list(row) for row in rows]
    cells = [[format_cell(value) for value in row] for row in body]
    header = [plain(name) for name in columns]
    right = [_is_numeric(column) for column in zip(*body, strict=True)] or [False] * len(header)
    return list(aligned(header, cells, right, ruled=True))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on stdout."""
    for line in format_table(columns, rows):
        click.echo(line)


def _is_numeric(values: Sequence[object]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)
