"""A recorder that keeps its rows in memory, so that a test can look at them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from stepscope.ingest.schema import BY_NAME

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder
    from stepscope.ingest.trace import Trace

Row = dict[str, Any]


class Rows:
    """Takes rows as the recorder does, and checks them against the schema."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = defaultdict(list)

    def __getattr__(self, table: str) -> Callable[..., None]:
        columns = BY_NAME[table].given
        required = set(BY_NAME[table].required)

        def record(*values: Any, **named: Any) -> None:
            assert len(values) <= len(columns)
            row = dict.fromkeys((column.name for column in columns), None)
            row |= dict(zip(row, values, strict=False)) | named
            assert all(row[name] is not None for name in required)
            for column in columns:
                assert not column.values or row[column.name] in {None, *column.values}, column
            self.tables[table].append(row)

        return record

    def in_two(
        self, table: str, names: Sequence[str], later: Sequence[str]
    ) -> tuple[Callable[..., Row], Callable[..., None]]:
        """Two functions: one takes a row, one adds the later columns to it."""

        def begin(*values: Any) -> Row:
            getattr(self, table)(**dict(zip(names, values, strict=True)))
            return self.tables[table][-1]

        def complete(begun: Row, *values: Any) -> None:
            begun.update(zip(later, values, strict=True))

        return begin, complete

    @classmethod
    def read(cls, trace: Trace) -> Rows:
        """Return the rows of a recorded trace."""
        rows = cls()
        for table in BY_NAME:
            rows.tables[table] = trace.table(table).collect().to_dicts()
        return rows

    @property
    def recorder(self) -> Recorder:
        """Itself, typed as what the engine asks for."""
        return cast("Recorder", self)

    def of(self, table: str, **wanted: Any) -> list[Row]:
        """Return the rows of a table whose columns have the wanted values."""
        return [
            row
            for row in self.tables[table]
            if all(row[name] == value for name, value in wanted.items())
        ]
