"""The overview: batches over time, and in words what the trace is and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message

from stepscope.app.palette import COUNTER, DECODE, PREFILL, RECOMPUTE, STATES, WAITING
from stepscope.app.timeline import Composition
from stepscope.app.tui.actions import bindings
from stepscope.app.tui.ink import MUTED
from stepscope.app.tui.pages.overview_words import About
from stepscope.app.tui.widgets.chart import Chart, Layer, Numbers
from stepscope.app.tui.widgets.prose import Block, Heading, Paragraph, Prose


class OverviewPage(Horizontal, can_focus=True):
    """Charts over the steps on the left, words on the right."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("overview")]

    class Moved(Message):
        """Another step was chosen."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._about: About | None = None
        self._verdict: Sequence[Block] = (Paragraph("The rules are running …", MUTED),)
        self._composition: Composition | None = None

    def compose(self) -> ComposeResult:
        """Lay out the charts and the words."""
        with Vertical(id="charts"):
            yield Chart("tokens", id="tokens")
            yield Chart("requests", id="requests")
            yield Chart("KV blocks", id="kv")
        yield Prose(id="about")

    def show(self, about: About, composition: Composition) -> None:
        """Show a trace."""
        self._about, self._composition = about, composition
        self.query_one("#tokens", Chart).show(
            (
                Layer("decode", composition.decode_tokens, STATES[DECODE].colour, "▌"),
                Layer("prefill", composition.prefill_tokens, STATES[PREFILL].colour),
                *_recompute(composition),
            ),
            _most(composition.budget),
        )
        self.query_one("#requests", Chart).show(
            (
                Layer("running", composition.running, STATES[COUNTER].colour),
                Layer("waiting", composition.waiting, STATES[WAITING].colour, "░"),
            )
        )
        used = composition.kv_total - composition.kv_free
        self.query_one("#kv", Chart).show(
            (Layer("in use", used, STATES[COUNTER].colour),), _most(composition.kv_total)
        )
        for chart, layers in (
            ("#requests", (composition.running, composition.waiting)),
            ("#kv", (used,)),
        ):
            self.query_one(chart).display = any(np.isfinite(values).any() for values in layers)
        self._show_words()

    def show_verdict(self, verdict: Sequence[Block]) -> None:
        """Show what was found."""
        self._verdict = verdict
        self._show_words()

    def point_at(self, index: int | None) -> None:
        """Put the cursor of every chart on a step."""
        for chart in self.query(Chart):
            chart.point_at(index)

    def action_column(self, by: int) -> None:
        """Move to the step that is drawn a cell to the left or right."""
        chart = self.query_one("#tokens", Chart)
        if chart.num_steps:
            here = chart.cursor or 0
            stride = max(chart.num_steps // max(chart.size.width, 1), 1)
            self.post_message(self.Moved(min(max(here + by * stride, 0), chart.num_steps - 1)))

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one("#about").scroll_relative(y=lines, animate=False)

    def action_edge(self, index: int) -> None:
        """Move to the first or the last step."""
        chart = self.query_one("#tokens", Chart)
        if chart.num_steps:
            self.post_message(self.Moved(index % chart.num_steps))

    @on(Chart.Chosen)
    def _choose(self, event: Chart.Chosen) -> None:
        self.post_message(self.Moved(event.index))

    def _show_words(self) -> None:
        if self._about:
            words = [*self._about.head, Heading("findings"), *self._verdict, *self._about.body]
            self.query_one("#about", Prose).show(words)


def _recompute(composition: Composition) -> tuple[Layer, ...]:
    """A layer of what was computed again, where any was."""
    again = composition.recompute_tokens
    if not np.nansum(again):
        return ()
    return (Layer("recompute", again, STATES[RECOMPUTE].colour, "▒"),)


def _most(values: Numbers) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None
