"""Rows of a table that holds A against B: what A has, what B has, and B less A.

What one of the two does not tell has no delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from stepscope.app.present.blocks import Block, Table
from stepscope.app.present.diff_text import amount

UNKNOWN = "not recorded"
HEADER = ("A", "B", "B − A")
T = TypeVar("T")
Cells = tuple[str, str, str]
Row = tuple[str, str, str, str]


def delta(name: str, a: float | None, b: float | None) -> str:
    """B less A in the unit of the quantity; unknown where either is."""
    if a is None or b is None:
        return UNKNOWN
    by = b - a
    said = amount(name, round(by) if isinstance(a, int) and isinstance(b, int) else float(by))
    return f"+{said}" if by > 0 else said


def row(name: str, a: float | None, b: float | None) -> Cells:
    """What A has, what B has, and the delta."""
    return amount(name, a), amount(name, b), delta(name, a, b)


def said_row(a: float | None, b: float | None, said: Callable[[float], str]) -> Cells:
    """The same of a quantity that `said` writes."""
    first, second = ("-" if each is None else said(each) for each in (a, b))
    if a is None or b is None:
        return first, second, UNKNOWN
    return first, second, f"+{said(b - a)}" if b > a else said(b - a)


def share_row(a: float | None, b: float | None) -> Cells:
    """Shares in percent, and their delta in percentage points."""
    first, second, _ = said_row(a, b, lambda share: f"{share:.1%}")
    by = UNKNOWN if a is None or b is None else f"{(b - a) * 100:+.1f} pp"
    return first, second, by.replace("+0.0", "0.0").replace("-0.0", "0.0")


def table_of(name: str, rows: Iterable[Row], more: int = 0) -> Table:
    """A table of such rows under the names A, B and B − A."""
    return Table(
        (name, *HEADER), tuple(rows), to_right=HEADER, is_ruled=False, num_more=max(more, 0)
    )


def tables_of(name: str, rows: Iterable[Row], more: int = 0) -> Iterator[Block]:
    """The same; none where there is no row."""
    if told := tuple(rows):
        yield table_of(name, told, more)


def each_of(
    both: Sequence[T | None], told: Callable[[T], float | None]
) -> tuple[float | None, float | None]:
    """What is told of A and of B; None of what is not there."""
    a, b = (None if each is None else told(each) for each in both)
    return a, b
