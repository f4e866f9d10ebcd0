"""Six things that nobody needs, each added as CONTRIBUTING says."""

from __future__ import annotations

from tests.contributing.patch import Patch

RULE = Patch(
    "Add a rule",
    "analyzers/rules/bat/bat099_step_is_slow.py",
    '''"""step-is-slow: a step takes a second or more.

## What it finds
Steps that last a second or more, whatever they compute: one finding for each.

## Why it hurts
Everybody in the batch waits for its end, and gets no token before it.

## Example
A prompt of 100,000 tokens that is computed at once: the step takes two seconds.

## How to fix
Compute long prompts in chunks, or let fewer requests into a batch.

## References
- The throughput of a device is its own affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class StepIsSlow:
    """See the module's page."""

    code: ClassVar[str] = "BAT099"
    name: ClassVar[str] = "step-is-slow"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("steps.dur_ns",)

    min_dur_ns: int = 1_000_000_000

    def check(self, trace: Trace) -> list[Finding]:
        """One finding for each step."""
        slow = trace.steps.filter(pl.col("dur_ns") >= self.min_dur_ns).collect()
        rows = slow.iter_rows(named=True)
        return [finding(self, f"step {row['step']} is slow", "be quick", at=row) for row in rows]
''',
    "StepIsSlow(),",
    "from stepscope.analyzers.rules.bat.bat099_step_is_slow import StepIsSlow",
    {
        "tests/analyzers/rules/bat/test_bat099_step_is_slow.py": """
import pytest

from stepscope.analyzers.check.registry import by_code
from stepscope.analyzers.check.run import check
from tests.traces import trace_of


@pytest.mark.parametrize(("dur_ns", "num"), [(1_000_000_000, 1), (999_999_999, 0)])
def test_check_runs_it_by_its_code(dur_ns, num):
    trace = trace_of(steps=[{"step": 1, "kind": "decode", "dur_ns": dur_ns}])

    assert check(trace, [by_code("BAT099")]).counts == {"BAT099": num}
"""
    },
    runs=(
        "tests/analyzers/check/test_registry.py",
        "tests/analyzers/check/test_explain.py",
    ),
)
READER = Patch(
    "Add a reader",
    "ingest/readers/step_list/reader.py",
    '''"""Reader of lists of steps: "steps:", and the length of one on each line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.manifest import ClockInfo, Manifest, ReadReport
from stepscope.ingest.progress import Progress

MARK = "steps:"


class StepListReader:
    """Reads a step from each line that is a number, and counts the others."""

    name = "list of steps"
    one_per_rank = False

    def sniff(self, head: bytes, path: Path) -> bool:
        """Tell by the mark."""
        return head.startswith(MARK.encode())

    def sources(self, path: Path) -> list[Path]:
        """The file alone."""
        return [path]

    def read(
        self, path: Path, progress: Progress | None, limits: Limits = DEFAULTS
    ) -> tuple[Mapping[str, Frame], Manifest]:
        """Read the steps."""
        lines = path.read_text("utf-8", "replace").removeprefix(MARK).split()
        lengths = [int(line) for line in lines if line.isdigit()]
        steps = pl.DataFrame({"step": range(1, len(lengths) + 1), "dur_ns": lengths}).with_columns(
            ts_ns=pl.col("dur_ns").cum_sum() - pl.col("dur_ns"), kind=pl.lit(None, pl.String)
        )
        report = ReadReport({"steps": len(lengths)}, {"other lines": len(lines) - len(lengths)})
        clock, tables = ClockInfo("virtual"), {"steps": "inferred"}
        return {"steps": steps}, Manifest(self.name, clock=clock, tables=tables, report=report)
''',
    '"step_list.reader.StepListReader",',
    tests={
        "tests/ingest/test_step_list.py": '''
from stepscope.ingest.trace import Trace


def test_a_file_of_the_new_format_opens(tmp_path):
    file = tmp_path / "steps.txt"
    file.write_text("steps:\\n7\\nodd\\n9\\n")

    trace = Trace.open(file)

    assert trace.table("steps").collect()["dur_ns"].to_list() == [7, 9]
    assert sum(trace.manifest.report.skipped.values()) == 1
'''
    },
    document=("docs/formats.md", "| lists of requests", "| lists of steps | a step for each |"),
    runs=("tests/test_layout.py::"
          "test_every_format_is_read_from_a_folder_whose_reader_has_the_same_place",),
)  # fmt: skip
POLICY = Patch(
    "Add a policy",
    "engine/schedulers/alone.py",
    '''"""`alone`: one request after the other, whole prompts, nothing beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stepscope.engine.plan import Action, Admit, Reject, Run
from stepscope.engine.requests.request import Request
from stepscope.engine.state import State


@dataclass(frozen=True, slots=True)
class Alone:
    """Serves one request after the other."""

    name: str = "alone"

    knobs: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    slotted: ClassVar[bool] = False
    supports: ClassVar[frozenset[str]] = frozenset()

    def schedule(self, state: State) -> Iterator[Action]:
        """Go on with the one that runs, or let the next one in."""
        if state.running:
            yield Run(state.running[0], 1)
        while state.waiting and not state.running:
            request = state.waiting[0]
            if reject := _never_fits(state, request):
                yield reject
            else:
                yield Admit(request)
                yield Run(request, request.num_tokens)


def _never_fits(state: State, request: Request) -> Reject | None:
    needed, blocks = request.max_kv_tokens, state.kv_blocks
    room = min(state.config.max_num_batched_tokens, blocks.num_blocks * blocks.block_size)
    return Reject(request, "too long", "token-budget", needed, room) if needed > room else None
''',
    "Alone,",
    "from stepscope.engine.schedulers.alone import Alone",
    {
        "tests/engine/schedulers/test_alone.py": """
from stepscope.engine.schedulers.alone import Alone
from tests.engine.small_engines import request, serve


def test_nobody_has_company():
    _, rows = serve([request("a"), request("b")], Alone())

    assert {step["num_running"] for step in rows.of("steps")} == {1}
"""
    },
    runs=(
        "tests/engine/schedulers/test_seam.py",
        "tests/engine/serving/test_engine_machine.py::"
        "test_what_must_hold_holds_whatever_comes_and_whenever[Alone]",
    ),
)
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
    runs=("tests/app/web/test_tabs.py::"
          "test_every_pane_draws_an_empty_trace_and_is_spelled_by_its_name[size]",),
)  # fmt: skip
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
PATCHES = (RULE, READER, POLICY, PAGE, PANE, COMMAND)
