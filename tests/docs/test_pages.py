"""docs/reference/ says what the code says."""

from __future__ import annotations

import re

import stepscope
from stepscope.app.cli.main import COMMANDS
from stepscope.engine.faults import FAULTS
from stepscope.ingest.schema import TABLES
from tests.looped import looped
from tests.matrix import FIRES
from tests.pages import FOLDER, PAGES


def committed(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@looped("name", PAGES)
def test_a_page_that_is_made_from_code_is_not_stale(name: str) -> None:
    assert committed(name) == PAGES[name](), "make docs"


def test_there_is_no_page_that_nothing_makes() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


def test_every_command_has_its_help_on_the_page() -> None:
    page = committed("commands.md")

    assert [name for name in COMMANDS if f"\n## stepscope {name}\n" not in page] == []
    assert page.count("Usage: stepscope") == page.count("\n## stepscope")


def test_every_table_and_column_is_on_the_page() -> None:
    page = committed("tables.md")

    for table in TABLES:
        part = page.partition(f"\n## {table.name}\n")[2].partition("\n## ")[0]
        told = re.findall(r"^\| (\*\*)?`(\w+)`", part, re.MULTILINE)
        assert [name for _, name in told] == [*table.names[2:]]
        bold = {name for mark, name in told if mark}
        assert bold == set(table.required) - {"rank", "step"}


def test_every_name_that_is_offered_is_on_the_page() -> None:
    parts = re.findall(r"^## (\w+)$", committed("python.md"), re.MULTILINE)

    assert sorted(parts) == sorted(stepscope.__all__)


def test_every_fault_is_listed_with_the_rules_that_are_made_for_it() -> None:
    rows = re.findall(
        r"^\| ([\w-]+) \| ([\w-]+) \| .+ \| (\[.+) \|$", committed("faults.md"), re.MULTILINE
    )
    listed = [(scenario, name, re.findall(r"\[(\w+)\]", links)) for scenario, name, links in rows]

    assert listed == [(each.scenario, each.name, [*FIRES[each.name]]) for each in FAULTS]
