"""How many pairs of rows a query's joins may make.

A join without equal columns makes all of them: Polars has an index of every pair before anything is
thrown away, and ends the process that lacks room for it. One with equal columns makes as many where
these are all alike. The plan is walked as Polars offers it to engines that run one
(`NodeTraverser`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

OF_ALL_PAIRS = ("cross", "iejoin", "nestedloop", "range")
"""How Polars calls joins that may make a row of any two."""
NUM_SIDES = 2
_SCALAR = {"Agg", "Len", "Literal"}
_PARTS = ("expr", "left", "right", "input", "by", "predicate", "truthy", "falsy")


class Pairs(NamedTuple):
    """The most pairs of any join: of those that look at all of them, and of whatever kind."""

    of_all: int = 0
    of_any: int = 0


def most_pairs(query: pl.LazyFrame, most_rows: int) -> Pairs:
    """Pairs of rows that a join of a query could make.

    `most_rows` is how many rows a table may have whose number the plan does not tell.
    """
    return _Walk(query._ldf.visit(), most_rows).walk()[1]


class _Walk:
    """Walks a plan from its root; each node gives how many rows it makes at most, and pairs."""

    def __init__(self, plan: Any, most_rows: int) -> None:
        self._plan = plan
        self._most_rows = most_rows

    def walk(self) -> tuple[int, Pairs]:
        """Rows of the node, and pairs of the joins in and below it."""
        node = self._plan.view_current_node()
        kind = type(node).__name__
        here = self._plan.get_node()
        below = []
        for each in self._plan.get_inputs():
            self._plan.set_node(each)
            below.append(self.walk())
        self._plan.set_node(here)
        rows = [num for num, _ in below]
        of_all = max((pairs.of_all for _, pairs in below), default=0)
        of_any = max((pairs.of_any for _, pairs in below), default=0)
        if kind != "Join" or len(rows) != NUM_SIDES:
            return self._rows(kind, node, rows), Pairs(of_all, of_any)
        made = rows[0] * rows[1]
        if _is_of_all_pairs(node.options[0]):
            return made, Pairs(max(of_all, made), max(of_any, made))
        return max(rows), Pairs(of_all, max(of_any, made))

    def _rows(self, kind: str, node: Any, rows: list[int]) -> int:
        if kind == "DataFrameScan":
            return int(node.df.height())
        if kind == "Select" and all(self._is_scalar(each.node) for each in node.expr):
            return 1
        if kind == "Slice":
            return min(rows[0], int(node.len))
        if kind == "Union":
            return sum(rows)
        return max(rows, default=self._most_rows)

    def _is_scalar(self, expression: int) -> bool:
        """Whether an expression is one value, however many rows it is made of."""
        node = self._plan.view_expression(expression)
        if type(node).__name__ in _SCALAR:
            return True
        parts = [getattr(node, name) for name in _PARTS if hasattr(node, name)]
        ids = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        return bool(ids) and all(isinstance(each, int) and self._is_scalar(each) for each in ids)


def _is_of_all_pairs(how: Any) -> bool:
    name = how if isinstance(how, str) else how[0]
    return str(name).lower() in OF_ALL_PAIRS
