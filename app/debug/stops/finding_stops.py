"""Stop where a rule found something: `finding`, `finding KVB003`."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analyzers.findings.finding_table import FINDINGS
from stepscope.app.debug.stops.stop import Selection
from stepscope.app.debug.stops.tables import Tables
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.query import near


class FindingStops:
    """Findings of one rule or of all: the rules are run when one is first asked for."""

    usage = (("finding [CODE]", "where a rule found something, such as KVB003"),)

    def read(self, wanted: str, tables: Tables) -> tuple[Selection, ...] | None:
        """Read the code; a rule that is not applicable has not looked, and says so."""
        word, _, code = wanted.partition(" ")
        if word != "finding":
            return None
        code = code.strip().upper()
        if not code:
            return (Selection(FINDINGS, pl.lit(value=True)),)
        checked = tables.checked
        if lacking := checked.lacking.get(code):
            raise ConfigError(
                f"{code} is not applicable: the trace does not have {', '.join(lacking)}"
            )
        if code not in checked.counts:
            raise ConfigError(f"no rule {code}", todo=near(code, checked.counts))
        return (Selection(FINDINGS, pl.col("code") == code),)

    def words(self, tables: Tables) -> Iterable[str]:
        """The word; codes are known once the rules were run."""
        return ("finding",)
