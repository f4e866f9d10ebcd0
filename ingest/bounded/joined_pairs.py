"""How many pairs of rows a query's joins may make.

A join without equal columns makes all of them: Polars has an index of every pair before anything is
thrown away, and ends the process that lacks room for it. One with equal columns makes as many where
these are all alike. The plan is walked as Polars offers it to engines that run one
(`NodeTraverser`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from stepscope.ingest.errors import QueryError

MOST_PAIRS = 50_000_000
"""Pairs of rows that a join without equal columns may look at: their index is 0.4 GB."""
OF_ALL_PAIRS = ("cross", "iejoin", "nestedloop", "range")
"""How Polars calls joins that may make a row of any two."""
NUM_SIDES = 2
_SCALAR = {"Agg", "Len", "Literal"}
_PARTS = ("expr", "left", "right", "input", "by", "predicate", "truthy", "falsy")


class Pairs(NamedTuple):
    """The most pairs of any join: of those that look at all of them, and of whatever kind."""

    of_all: int = 0
    of_any: int = 0


class NodeRows(NamedTuple):
    """Rows that a node of a plan makes: `usual` where keys tell rows apart, and at most."""

    usual: int
    most: int


def refuse_all_pairs(query: pl.LazyFrame, tables: Mapping[str, pl.LazyFrame]) -> Pairs:
    """Raise `QueryError` for a join of all pairs of many rows; else the pairs that joins may make.

    The plan is not walked where it has no join.
    """
    if "JOIN" not in query.explain():
        return Pairs()
    heights = pl.collect_all([frame.select(pl.len()) for frame in tables.values()])
    pairs = most_pairs(query, max((height.item() for height in heights), default=0))
    if pairs.of_all > MOST_PAIRS:
        raise QueryError(
            f"a join of all rows would look at {pairs.of_all:,} pairs of them",
            todo="join on columns that are equal, or take fewer rows before, with limit",
        )
    return pairs


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

    def walk(self) -> tuple[NodeRows, Pairs]:
        """Rows of the node, and pairs of the joins in and below it."""
        node = self._current_node()
        kind = type(node).__name__
        position = self._plan.get_node()
        below = []
        for child in self._plan.get_inputs():
            self._plan.set_node(child)
            below.append(self.walk())
        self._plan.set_node(position)
        rows = [num for num, _ in below]
        of_all = max((pairs.of_all for _, pairs in below), default=0)
        of_any = max((pairs.of_any for _, pairs in below), default=0)
        if len(rows) != NUM_SIDES or kind not in {"Join", "NoneType"}:
            made = NodeRows(
                self._rows(kind, node, [num.usual for num in rows]),
                self._rows(kind, node, [num.most for num in rows]),
            )
            return made, Pairs(of_all, of_any)
        usual, most = rows[0].usual * rows[1].usual, rows[0].most * rows[1].most
        if node is not None and _is_of_all_pairs(node.options[0]):
            return NodeRows(usual, most), Pairs(max(of_all, usual), max(of_any, most))
        return NodeRows(max(num.usual for num in rows), most), Pairs(of_all, max(of_any, most))

    def _current_node(self) -> Any:
        """The node as Polars describes it; None where it describes none of the kind.

        It describes no scan of a file in memory, as a table is that was read and is not cached.
        """
        try:
            return self._plan.view_current_node()
        except NotImplementedError:
            return None

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
        pending = [expression]
        while pending:
            node = self._plan.view_expression(pending.pop())
            if type(node).__name__ in _SCALAR:
                continue
            parts = [getattr(node, name) for name in _PARTS if hasattr(node, name)]
            ids = [each for part in parts for each in (part if isinstance(part, list) else [part])]
            if not ids or not all(isinstance(each, int) for each in ids):
                return False
            pending += ids
        return True


def _is_of_all_pairs(how: Any) -> bool:
    name = how if isinstance(how, str) else how[0]
    return str(name).lower() in OF_ALL_PAIRS
