"""What spans are called, as numbers, an array for each table: so millions are counted at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.palette import CACHED, FRONT_END, IDLE, OWNERS, STATES, UNKNOWN
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import TABLES
from stepscope.app.timeline.profile.top_names import shown
from stepscope.ingest.derive.launches import on_device
from stepscope.ingest.trace import Trace

Codes = npt.NDArray[np.int32]
NO_CATEGORY = "no category"
REQUESTS = ("batch_rows", "lifecycle", "allocations", "queue_order")
OF_REQUESTS = {FRONT_END: "front end", IDLE: "in no batch", UNKNOWN: "running"}
"""Where a request's state is not called as in the palette; a legend has the same words."""


@dataclass(slots=True)
class Texts:
    """Texts, each with a number of its own."""

    texts: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """The number of a text."""
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]

    def numbers(self, texts: Iterable[str]) -> Codes:
        """The number of each text."""
        return np.array([self.number(each) for each in texts], np.int32)


@dataclass(frozen=True, slots=True)
class AreaNames:
    """The names and states that the numbers in an area's spans stand for."""

    names: Texts = field(default_factory=Texts)
    states: Texts = field(default_factory=Texts)


class SpanNames:
    """The name and the state of every span, by the row that it stands for.

    What a table has no names for goes by its state. A span of a profile has its category for a
    state; kernels go by their readable names.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.names, self.states = Texts(), Texts()
        self._of_rows: dict[tuple[str, str], Codes] = {}

    def name(self, table: int, ref: npt.NDArray[np.uint32], state: npt.NDArray[np.uint8]) -> Codes:
        """The number of each span's name, of spans of one table."""
        named = {
            "spans": self._span_names,
            "core_spans": self._task_names,
            "collectives": lambda: self._texts("collectives", "op", "collective"),
            "allocations": lambda: self._texts("allocations", "owner", "no known owner"),
        }.get(TABLES[table])
        if named is not None and TABLES[table] == "allocations":
            codes = self._gathered("name", TABLES[table], named, ref)
            cached = self.names.number(STATES[CACHED].name)
            return np.where(state == CACHED, np.int32(cached), codes)
        if named is None:
            return self._by_state(self.names, TABLES[table], state)
        return self._gathered("name", TABLES[table], named, ref)

    def state(self, table: int, ref: npt.NDArray[np.uint32], state: npt.NDArray[np.uint8]) -> Codes:
        """The number of each span's state in words, of spans of one table."""
        if TABLES[table] != "spans":
            return self._by_state(self.states, TABLES[table], state)
        return self._gathered("state", "spans", self._categories, ref)

    def _gathered(
        self, what: str, table: str, named: Callable[[], Codes], ref: npt.NDArray[np.uint32]
    ) -> Codes:
        if (what, table) not in self._of_rows:
            self._of_rows[what, table] = named()
        return self._of_rows[what, table][ref]

    def _by_state(self, texts: Texts, table: str, state: npt.NDArray[np.uint8]) -> Codes:
        own = {
            UNKNOWN: "unknown",
            **dict.fromkeys(OWNERS, "owned"),
            **(OF_REQUESTS if table in REQUESTS else {}),
        }
        called = [own.get(at, each.name) for at, each in enumerate(STATES)]
        return texts.numbers(called)[state]

    def _span_names(self) -> Codes:
        """Kernels by their readable names, others as they are called."""
        rows = self._trace.as_held("spans").select("name", "category").collect()
        names, number = _numbered(rows["name"])
        executed = on_device(rows["category"]).to_numpy()

        def called(code: int) -> int:
            name = names[code // 2]
            return self.names.number(shown(name) if code % 2 else plain(name or "unnamed"))

        return _looked_up(number * 2 + executed, called)

    def _texts(self, table: str, column: str, otherwise: str) -> Codes:
        """The texts of a column, as they were recorded."""
        texts, number = _numbered(self._trace.table(table).select(column).collect()[column])
        return _looked_up(number, lambda code: self.names.number(plain(texts[code] or otherwise)))

    def _categories(self) -> Codes:
        rows = self._trace.as_held("spans").select("category").collect()
        categories, number = _numbered(rows["category"])
        return _looked_up(
            number, lambda code: self.states.number(plain(categories[code] or NO_CATEGORY))
        )

    def _task_names(self) -> Codes:
        key = ["rank", "task"]
        tasks = self._trace.tasks.select(*key, "name").unique(
            key, keep="first", maintain_order=True
        )
        blocks = self._trace.core_spans.select(*key)
        rows = blocks.join(tasks, on=key, how="left", maintain_order="left").collect()
        name = pl.coalesce("name", pl.format("task {}", "task"), pl.lit("no task"))
        rows = rows.select(name=name)
        unique = rows.unique(maintain_order=True)
        return _of_pairs(rows, unique, self.names.numbers(plain(each) for each in unique["name"]))


def _numbered(texts: pl.Series) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The texts of a column, behind them none, and the number of each row's among these."""
    kind = texts.dtype
    known = kind if isinstance(kind, pl.Enum) else pl.Enum(texts.drop_nulls().unique())
    number = texts.cast(known).to_physical().cast(pl.Int64).fill_null(len(known.categories))
    return [*known.categories, None], number.to_numpy()


def _looked_up(codes: npt.NDArray[np.int64], number: Callable[[int], int]) -> Codes:
    """The number of each code, asked for once for each that there is."""
    known = np.flatnonzero(np.bincount(codes))
    table = np.zeros(known[-1] + 1 if len(known) else 0, np.int32)
    table[known] = [number(code) for code in known.tolist()]
    return table[codes]


def _of_pairs(rows: pl.DataFrame, unique: pl.DataFrame, numbers: Codes) -> Codes:
    """The number of each row, given those of the distinct ones."""
    if rows.is_empty():
        return np.zeros(0, np.int32)
    told = unique.with_columns(number=pl.Series(numbers, dtype=pl.Int32))
    found = rows.join(told, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")[
        "number"
    ]
    return found.to_numpy()
