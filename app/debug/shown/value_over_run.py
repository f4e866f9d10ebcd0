"""A value of a table's rows over the whole run, and what it is where one stands."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.sparkline import Timeline
from stepscope.app.units import count
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import condition, explained

COMMAND = "value"
"""The command of the prompt; a front takes what stands behind it, with it or without."""
FORMS = (
    ("EXPRESSION", "over the columns of steps: num_waiting, num_waiting * 2"),
    ("TABLE: EXPRESSION", "over those of another table: counters: value"),
)
"""How a value is written, and what that means."""
NO_STEP = -1
_FORM = re.compile(r"\s*((?P<table>\w+)\s*:(?!:))?(?P<expression>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ValueOverRun:
    """A value at the times of its rows, and the steps that these name, NO_STEP where none.

    `wanted` is as it was written, with its table.
    """

    wanted: str
    expression: str
    line: Timeline
    step: npt.NDArray[np.int64]

    @property
    def low(self) -> float:
        """The least that it is."""
        return float(self.line.values.min())

    @property
    def high(self) -> float:
        """The most that it is."""
        return float(self.line.values.max())

    def facts(self, ts_ns: int) -> dict[str, float | None]:
        """The least, the most, and what it is at a time; None before it is known."""
        return {"min": self.low, "max": self.high, "here": self.line.at(ts_ns)}

    def told(self, ts_ns: int) -> str:
        """The same in words: `min 0 max 40 here 12`."""
        facts = self.facts(ts_ns).items()
        return " ".join(f"{key} {'not yet' if v is None else count(v)}" for key, v in facts)


def value_over_run(debugger: Debugger, words: str) -> ValueOverRun | str:
    """The value of an expression over the rows of `steps`, or of a table named before a colon.

    It is that of the debugger's rank, and what is no finite number is left out; a line where
    nothing of it is recorded. Raises ConfigError for words that say no value.
    """
    found = _FORM.fullmatch(_without_command(words))
    assert found
    name, expression = found["table"] or "steps", found["expression"].strip()
    if not expression:
        raise ConfigError("value needs an expression", todo="write it like value num_waiting")
    own = debugger.tables.table(name).filter(pl.col("rank") == debugger.rank).sort("ts_ns")
    with explained():
        told = own.select("ts_ns", "step", value=condition(expression)).collect()
        numbers = told.with_columns(pl.col("value").cast(pl.Float64))
    values = numbers.filter(pl.col("ts_ns").is_not_null(), pl.col("value").is_finite())
    if not len(values):
        return f"not recorded: {expression} is null throughout"
    line = Timeline(values["ts_ns"].to_numpy(), values["value"].to_numpy(), debugger.bounds_ns)
    return ValueOverRun(
        words.strip(), expression, line, values["step"].fill_null(NO_STEP).to_numpy()
    )


def _without_command(words: str) -> str:
    command, _, rest = words.strip().partition(" ")
    return rest if command == COMMAND else words
