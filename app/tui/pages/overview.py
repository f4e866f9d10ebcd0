"""The overview: batches over time, and in words what the trace is and what was found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from stepscope.app.palette import COUNTER, DECODE, PREFILL, RECOMPUTE, STATES, WAITING
from stepscope.app.present.blocks import Heading, Paragraph, Tone
from stepscope.app.timeline import Composition
from stepscope.app.tui.actions import SCROLLS, actions
from stepscope.app.tui.pages.overview_words import verdict
from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.widgets.chart import Chart, Layer, Numbers
from stepscope.app.tui.widgets.prose import Prose, Shown

KEYS = (
    *actions(
        ("column(-1)", "h,left,comma", "h ,", "a column earlier", "column"),
        ("column(1)", "l,right,full_stop", "l .", "a column later", "column"),
        ("edge(0)", "g,home", "g", "first step"),
        ("edge(-1)", "G,end", "G", "last step"),
    ),
    *SCROLLS,
)


class OverviewPage(Page):
    """Charts over the steps on the left, words on the right."""

    ACTIONS = KEYS
    SCOPED_CSS = False
    DEFAULT_CSS = """
    OverviewPage { layout: horizontal; }
    #charts { width: 1fr; height: 100%; }
    Chart { height: 1fr; min-height: 3; }
    #tokens { height: 2fr; }
    #about { width: 50; height: 100%; border-left: solid $border; }
    .-narrow #about { width: 40; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._composition: Composition | None = None

    def compose(self) -> ComposeResult:
        """Lay out the charts and the words."""
        with Vertical(id="charts"):
            yield Chart("tokens", id="tokens")
            yield Chart("requests", id="requests")
            yield Chart("KV blocks", id="kv")
        yield Prose(id="about")

    def show(self, opened: Opened) -> None:
        """Show the charts once, the words as they come, and where the cursor is."""
        if self._composition is not opened.models.composition:
            self._draw(opened.models.composition)
        about = opened.models.about
        words = [*about.head, Heading("findings"), *_verdict(opened), *about.body]
        self.query_one("#about", Prose).show(words)
        for chart in self.query(Chart):
            chart.point_at(opened.step_index)

    def _draw(self, composition: Composition) -> None:
        self._composition = composition
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

    def action_column(self, by: int) -> None:
        """Move to the step that is drawn a cell to the left or right."""
        chart = self.query_one("#tokens", Chart)
        if chart.num_steps:
            here = chart.cursor or 0
            stride = max(chart.num_steps // max(chart.size.width, 1), 1)
            self._go_to(min(max(here + by * stride, 0), chart.num_steps - 1))

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one("#about").scroll_relative(y=lines, animate=False)

    def action_edge(self, index: int) -> None:
        """Move to the first or the last step."""
        chart = self.query_one("#tokens", Chart)
        if chart.num_steps:
            self._go_to(index % chart.num_steps)

    @on(Chart.Chosen)
    def _choose(self, event: Chart.Chosen) -> None:
        self._go_to(event.index)

    def _go_to(self, index: int) -> None:
        if self._composition:
            self.post_message(self.Moved(int(self._composition.formed_ns[index])))


def _verdict(opened: Opened) -> Sequence[Shown]:
    """What was found, or why nothing is said of it."""
    if opened.result:
        return verdict(opened.result)
    if failed := opened.failed.get("check"):
        return (Paragraph(failed),)
    return (Paragraph("The rules are running …", Tone.MUTED),)


def _recompute(composition: Composition) -> tuple[Layer, ...]:
    """A layer of what was computed again, where any was."""
    again = composition.recompute_tokens
    if not np.nansum(again):
        return ()
    return (Layer("recompute", again, STATES[RECOMPUTE].colour, "▒"),)


def _most(values: Numbers) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None
