"""The page of the tables: every column of a trace, as `ingest/schema.py` has it."""

from __future__ import annotations

from stepscope.analyzers.check.registry import RULES, by_family
from stepscope.ingest.columns import Column, Table, Type
from stepscope.ingest.schema import FORMAT_VERSION, RANK, STEP, TABLES

TYPES = {
    Type.I64: "integer, 64 bits", Type.I32: "integer, 32 bits", Type.F64: "floating point",
    Type.STR: "text", Type.BOOL: "yes or no",
}  # fmt: skip
HEAD = f"""# Tables of a trace

Made from `ingest/schema.py` by `make docs`: format {FORMAT_VERSION}. A trace is a folder of Parquet
files, one or more a table, and a manifest; the [recorder](../recorder.md) has a function for each
table, and `stepscope sql TRACE QUERY` asks them.

Every table begins with `{RANK.name}` ({RANK.meaning}), `{STEP.name}` ({STEP.meaning})
and `ts_ns`. Times are nanoseconds on the clock that the manifest names; a name that ends in `_ns`
is a time or a duration, in `_bytes` a size. **Null is not known, zero is zero.** A column in bold
is given in every row.
"""


def tables_page() -> str:
    """Return the page: a part for each table."""
    return "\n".join([HEAD, *(_part(table) for table in TABLES)])


def _part(table: Table) -> str:
    rows = [_row(table, column) for column in table.columns if column not in {RANK, STEP}]
    head = f"## {table.name}\n\nA row is {table.row}.{_needed_by(table)}\n"
    return "\n".join([head, "| column | type | meaning |", "|---|---|---|", *rows, ""])


def _row(table: Table, column: Column) -> str:
    name = f"**`{column.name}`**" if column.name in table.required else f"`{column.name}`"
    values = ", ".join(f"`{value}`" for value in column.values)
    meaning = f"{column.meaning}: {values}" if values else column.meaning
    return f"| {name} | {TYPES[column.type]} | {meaning.replace('|', chr(92) + '|')} |"


def _needed_by(table: Table) -> str:
    codes = [
        rule.code
        for rule in by_family(RULES)
        if table.name in {need.partition(".")[0] for need in rule.needs}
    ]
    links = ", ".join(f"[{code}](../rules/{code}.md)" for code in codes)
    return f" Rules that need it: {links}." if codes else " No rule needs it."
