"""Our own pages: of each rule, and of each table with its columns."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from stepscope.analyzers.check.explain import explain
from stepscope.analyzers.check.registry import by_family, usable_rules
from stepscope.analyzers.findings.finding_table import FINDING_COLUMNS, FINDINGS
from stepscope.ingest.columns import Table
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import TABLES

_OF_FINDINGS = f"""# {FINDINGS}

A row is what a rule found in the trace, as the tool check lists it. Null is not known.

- {", ".join(f"`{name}`" for name in FINDING_COLUMNS)}
"""


def listed() -> list[dict[str, Any]]:
    """Every rule and every table, with what it is in short."""
    rules = [
        {"rule": rule.code, "finds": rule.name, "severity": str(rule.severity)}
        for rule in by_family(usable_rules())
    ]
    return [*rules, *({"table": table.name, "a_row_is": table.row} for table in TABLES)]


def page(name: str) -> str:
    """The page of a rule by its code, or of a table; raises ConfigError where there is none."""
    tables = {table.name: table for table in TABLES}
    if name.lower() in tables:
        return table_page(tables[name.lower()])
    if name.lower() == FINDINGS:
        return _OF_FINDINGS
    codes = [rule.code for rule in usable_rules()]
    if name.upper() in codes:
        return explain(name.upper())
    meant = get_close_matches(name, [*codes, *tables], n=3)
    todo = f"did you mean {' or '.join(meant)}?" if meant else "without a name, all are listed"
    raise ConfigError(f"there is no rule or table {name!r}", todo=todo)


def table_page(table: Table) -> str:
    """A table as Markdown: a line for each column; those that every row has are marked so."""
    lines = [f"# {table.name}", "", f"A row is {table.row}. Null is not known, zero is zero.", ""]
    for column in table.columns:
        values = f": {', '.join(column.values)}" if column.values else ""
        always = ", in every row" if column.name in table.required else ""
        lines.append(
            f"- `{column.name}` ({column.type.name.lower()}{always}): {column.meaning}{values}"
        )
    return "\n".join(lines) + "\n"


def schema_page() -> str:
    """Every table in a line."""
    told = (f"- `{table.name}`: a row is {table.row}" for table in TABLES)
    return "\n".join(["# Tables of a trace", "", *told, f"- `{FINDINGS}`: a row is a finding", ""])
