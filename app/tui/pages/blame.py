"""Where each request's time went: a waterfall of all of them, and the one under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from stepscope.analyzers.latency.blame import Blame
from stepscope.app.present.blame_bars import Bars
from stepscope.app.present.blocks import Paragraph, Tone
from stepscope.app.timeline import Hit
from stepscope.app.tui.actions import SCROLLS, actions
from stepscope.app.tui.pages.blame_rows import (
    ORDERS,
    BlameRows,
    legend,
    request_blocks,
    total_blocks,
)
from stepscope.app.tui.pages.page import Opened, Who
from stepscope.app.tui.pages.table_page import TablePage, row_actions
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.prose import Prose, Shown
from stepscope.app.tui.widgets.table import Table
from stepscope.ingest.errors import StepscopeError

KEYS = (
    *row_actions("request", "request"),
    *actions(
        ("sort", "s", "s", "sort by latency, by arrival, by time to first token", "sort"),
        ("jump", "enter", "enter", "show the request in full", "show it"),
    ),
    *SCROLLS,
)


class BlamePage(TablePage):
    """A table of requests with bars, and what the chosen one waited for.

    Latencies are split when the page is first opened, in a thread.
    """

    ACTIONS = KEYS
    WORDS = "blame-about"
    SCOPED_CSS = False
    DEFAULT_CSS = """
    BlamePage { layout: horizontal; }
    #bars { width: 1fr; height: 100%; }
    #blame-legend { height: 2; }
    #blamed { height: 1fr; }
    #blame-about { width: 56; height: 100%; border-left: solid $border; }
    .-narrow BlamePage { layout: vertical; }
    .-narrow #bars { width: 100%; height: 1fr; }
    .-narrow #blame-about {
        width: 100%; height: 45%; border-left: none;
        border-top: solid $border;
    }
    """

    @dataclass
    class Split(Message):
        """The latencies are split, or it is said why not."""

        blamed: Blame | None
        bars: Bars | None = None
        failure: str = ""

    @dataclass
    class Described(Message):
        """A request was looked up."""

        blocks: Sequence[Shown]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.opened: Opened | None = None
        self.blamed: Blame | None = None
        self.bars: Bars | None = None
        self.order = ORDERS[0]
        self._latest: Latest[dict[str, Any]] = Latest(self._look_up)

    def compose(self) -> ComposeResult:
        """Lay out what the bars mean, the bars, and the words."""
        with Vertical(id="bars"):
            yield Prose(id="blame-legend")
            yield Table(id="blamed")
        yield Prose(id="blame-about")

    def show(self, opened: Opened) -> None:
        """Show the page, and begin to split latencies where nobody has asked for it yet."""
        if self.opened is not opened:
            self.opened = opened
            self._say("adding up where each request's time went …")
            self._split(opened)

    def action_sort(self) -> None:
        """Sort by the next of the orders; the cursor goes to the top."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._fill()

    def action_jump(self) -> None:
        """Show the request in full; of a run that names none, go to where it begins."""
        row = self._row()
        if row and row["request"] is not None:
            self.post_message(self.RequestChosen(row["rank"], row["request"]))
        elif row:
            self.post_message(
                self.Visited(Hit("run", "", None, row["arrive_ns"], row["arrive_ns"]))
            )

    def asked(self, opened: Opened) -> Who | None:
        """The request at the cursor."""
        row = self._row()
        is_named = row is not None and row["request"] is not None
        return (row["rank"], row["request"]) if row and is_named else super().asked(opened)

    @work(thread=True)
    def _split(self, opened: Opened) -> None:
        try:
            blamed = opened.blamed()
            self.post_message(self.Split(blamed, Bars(blamed)))
        except StepscopeError as error:
            self.post_message(self.Split(None, failure=str(error)))
        except Exception as error:
            # A traceback over the screen would tell a user nothing.
            what = f"cannot split latencies: {type(error).__name__}: {error}"
            self.post_message(self.Split(None, failure=f"{what}; report this as a bug"))

    def on_blame_page_split(self, event: Split) -> None:
        """Fill the page."""
        event.stop()
        self.blamed, self.bars = event.blamed, event.bars
        if event.blamed is None:
            self._say(event.failure)
        else:
            self._fill()

    def _fill(self) -> None:
        if self.blamed is None or self.bars is None:
            return
        self.table.show(BlameRows(self.blamed, self.bars, self.order))
        self.query_one("#blame-legend", Prose).show([legend(self.blamed, self.order)])
        self._fit_legend()
        self.query_one("#blame-about", Prose).show(list(total_blocks(self.blamed)))
        self.action_edge(0)

    def on_resize(self) -> None:
        """Fit the legend to the new width, once it is laid out."""
        self.call_after_refresh(self._fit_legend)

    def _fit_legend(self) -> None:
        """Give the legend as many lines as its entries take."""
        shown = self.query_one("#blame-legend", Prose)
        shown.styles.height = max(shown.virtual_size.height, 1)

    def _row(self) -> dict[str, Any] | None:
        rows, cursor = self.table.rows, self.table.cursor
        return rows.row(cursor) if isinstance(rows, BlameRows) and cursor is not None else None

    def describe(self) -> None:
        """Look up everything about the request at the cursor."""
        row = self._row()
        if row:
            self._latest.ask(row)

    @work(thread=True)
    def _look_up(self, row: dict[str, Any]) -> None:
        if self.blamed and self.opened:
            words = [
                *request_blocks(self.opened.trace, self.blamed, row),
                *total_blocks(self.blamed),
            ]
            self.post_message(self.Described(words))

    def on_blame_page_described(self, event: Described) -> None:
        """Show what was found, unless another request is wanted by now."""
        event.stop()
        if self._latest.is_wanted():
            self.query_one("#blame-about", Prose).show(event.blocks)

    def _say(self, text: str) -> None:
        self.query_one("#blame-about", Prose).show([Paragraph(text, Tone.MUTED)])
