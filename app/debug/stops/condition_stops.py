"""Stop where a row meets an SQL condition: `steps: num_waiting > 20 and kv_blocks_free > 0`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stepscope.app.debug.stops.stop import Selection
from stepscope.app.debug.stops.tables import MEANINGS, Tables

_FORM = re.compile(r"(?P<table>\w+)\s*:\s*(?P<condition>.+)", re.DOTALL)


class ConditionStops:
    """A table, a colon and a condition over its columns."""

    usage = (("TABLE: CONDITION", "an SQL condition over the columns of a table"),)

    def read(self, wanted: str, tables: Tables) -> tuple[Selection, ...] | None:
        """Read the table and the condition."""
        found = _FORM.fullmatch(wanted)
        return (Selection(found["table"], found["condition"]),) if found else None

    def words(self, tables: Tables) -> Iterable[str]:
        """Tables that have rows, and their columns behind them."""
        for table in MEANINGS:
            if tables.is_recorded(table):
                yield f"{table}:"
