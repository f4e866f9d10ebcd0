"""What can be read without a trace: the page of each rule, and the schema of the tables."""

from __future__ import annotations

from typing import NamedTuple

from stepscope.ingest.errors import ConfigError

RULES, TABLES = "stepscope://rules/", "stepscope://tables/"
SCHEMA = "stepscope://tables"
MARKDOWN = "text/markdown"


class Page(NamedTuple):
    """A page by its address: what it is called, and what it is about."""

    uri: str
    name: str
    about: str


TEMPLATES = (
    Page(f"{RULES}{{code}}", "rule", "The page of a rule by its code, such as STV001."),
    Page(f"{TABLES}{{name}}", "table", "The columns of a table by its name, such as batch_rows."),
)


def pages() -> list[Page]:
    """Every page there is, the schema first."""
    from stepscope.analyzers.check.registry import by_family, usable_rules  # noqa: PLC0415 - few ask
    from stepscope.ingest.schema import TABLES as ALL_TABLES  # noqa: PLC0415 - the same

    return [
        Page(SCHEMA, "tables", "Every table of a trace in a line."),
        *(Page(f"{TABLES}{table.name}", table.name, f"A row is {table.row}.")
          for table in ALL_TABLES),
        *(Page(f"{RULES}{rule.code}", rule.code, f"{rule.name}: {rule.severity}")
          for rule in by_family(usable_rules())),
    ]  # fmt: skip


def text_at(uri: str) -> str:
    """What is at an address, as Markdown; raises ConfigError where nothing is."""
    from stepscope.app.mcp.desk.own_pages import page, schema_page  # noqa: PLC0415 - few ask

    if uri == SCHEMA:
        return schema_page()
    for begin in (RULES, TABLES):
        if uri.startswith(begin) and uri[len(begin) :].replace("_", "").isalnum():
            return page(uri[len(begin) :])
    raise ConfigError("there is no such page", todo=f"{SCHEMA} lists the tables")
