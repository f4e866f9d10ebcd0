"""Tables on a terminal or in a pipe: aligned, plain, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from stepscope.app.printable import plain

# A cell longer than this is cut, so that one long name does not push all others away.
WIDEST = 60


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
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def format_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table: a header, a rule and a line a row."""
    body = [list(row) for row in rows]
    cells = [[format_cell(value) for value in row] for row in body]
    header = [plain(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [_is_numeric(column) for column in zip(*body, strict=True)] or [False] * len(header)
    lines = [_line(header, widths, right), "  ".join("─" * width for width in widths)]
    return lines + [_line(row, widths, right) for row in cells]


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on stdout."""
    for line in format_table(columns, rows):
        click.echo(line)


def _is_numeric(values: Sequence[object]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()
