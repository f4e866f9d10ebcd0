"""A page, a pane, a tool and a command that nobody needs, each added as CONTRIBUTING says."""

from __future__ import annotations

from tests.contributing.patch import Patch

PAGE = Patch(
    "Add a page",
    "app/tui/pages/size.py",
    '''"""How much there is of a trace."""

from __future__ import annotations

from textual.app import ComposeResult

from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.widgets.prose import Prose, Title


class SizePage(Page):
    """The number of its steps."""

    def compose(self) -> ComposeResult:
        """Lay out the words."""
        yield Prose(id="size-words")

    def show(self, opened: Opened) -> None:
        """Say how many steps there are."""
        num_steps = len(opened.models.composition)
        self.query_one("#size-words", Prose).show([Title(f"{num_steps} steps in all")])
''',
    'Tab("size", "how much there is"),',
    tests={
        "tests/app/tui/pages/test_size.py": """
from stepscope.app.tui.pages import PAGES
from tests.app.tui.stage import opened, press, screen_text
from tests.traces import trace_of


async def test_its_tab_opens_it_by_the_digit_of_its_place():
    step = {"step": 1, "kind": "decode", "ts_ns": 0, "dur_ns": 9}
    async with opened(trace_of(steps=[step])) as pilot:
        await press(pilot, str(len(PAGES)))

        assert "1 steps in all" in screen_text(pilot)
        assert "Size" in screen_text(pilot)
"""
    },
    runs=("tests/app/tui/test_actions.py",),
)


PANE = Patch(
    "Add a pane",
    "app/web/panes/size.py",
    '''"""How much there is of a trace."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View


def size_pane(loaded: LoadedTrace, view: View) -> Component:
    """The number of its steps."""
    return html.P(f"{len(loaded.steps)} steps in all")
''',
    'Tab("size", "how much there is"),',
    tests={
        "tests/app/web/panes/test_size.py": '''
from stepscope.app.web.panes.pane import pane_of
from stepscope.app.web.view import View
from tests.app.web.small_traces import loaded_of
from tests.app.web.test_panes import said
from tests.traces import trace_of


def test_its_address_names_it_and_it_says_how_much_there_is():
    view = View.parse("?tab=size")
    loaded = loaded_of(trace_of(steps=[{"step": 1, "kind": "decode", "ts_ns": 0, "dur_ns": 9}]))

    assert "1 steps in all" in said(pane_of(view.tab)(loaded, view))
'''
    },
    runs=("tests/app/web/in_browser/test_tabs.py::"
          "test_every_pane_draws_an_empty_trace_and_is_spelled_by_its_name[size]",),
)  # fmt: skip


TOOL = Patch(
    "Add a tool for assistants",
    "app/mcp/tools/size.py",
    '''"""How much there is of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.app.mcp.answering.uncut import Answer
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces


class Sized(Arguments, frozen=True):
    """What is asked about."""

    trace: TraceName


def _answer(held: HeldTraces, asked: Sized) -> Answer:
    return Answer({"num_steps": held.trace(asked.trace).trace.num_rows("steps")})


SIZE = Tool("size", "How much there is", "Count the steps of a trace.", Sized, _answer)
''',
    "SIZE,",
    "from stepscope.app.mcp.tools.size import SIZE",
    {
        "tests/app/mcp/tools/test_size.py": """
from pathlib import Path

from tests.app.mcp.asked import Asked
from tests.ingest.merging.pairs import TOKENS, recorded


def test_it_counts_the_steps(tmp_path: Path):
    recorded(tmp_path)

    page = Asked(tmp_path).page("size", trace="run.trace")

    assert page.values["data"]["num_steps"] == len(TOKENS)
"""
    },
    runs=("tests/app/mcp/tools/test_hostile_text.py",),
)


COMMAND = Patch(
    "Add a command",
    "app/cli/commands/tables.py",
    '''"""`stepscope tables`: name the tables of a trace."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@opens_traces
def tables(trace: Path, open_trace: OpenTrace) -> None:
    """Name the tables of TRACE."""
    with progress() as report:
        opened = open_trace(trace, report)
    for name in sorted(opened.manifest.tables):
        click.echo(name)
''',
    '"tables": "Name the tables of a trace.",',
    tests={
        "tests/app/cli/commands/test_tables.py": """
from tests.app.cli.conftest import Command


def test_it_is_in_the_help_and_runs(stepscope: Command, sample_traces):
    trace = next(sample_traces.glob("*.trace"))

    assert "Name the tables of a trace." in stepscope("--help").out
    assert "steps" in stepscope("tables", trace).out.split()
"""
    },
    document=(
        "README.md",
        "stepscope check",
        "stepscope tables a.trace    # which tables it has",
    ),
    runs=("tests/app/cli/test_main.py",),
)
