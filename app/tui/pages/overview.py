"""The overview: batches over time, and in words what the trace is and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from stepscope.app.live import words
from stepscope.app.live.words import STEPS_ARE_NOT_WALKED
from stepscope.app.palette import COUNTER, DECODE, PREFILL, RECOMPUTE, STATES, WAITING
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Tone
from stepscope.app.present.summary.parts import Summary
from stepscope.app.present.summary.summing import summary
from stepscope.app.timeline import Composition
from stepscope.app.tui.actions import SCROLLS, actions
from stepscope.app.tui.pages.overview_words import verdict
from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.widgets.chart import Chart, Layer, Numbers
from stepscope.app.tui.widgets.in_prose.side_columns import column_width
from stepscope.app.tui.widgets.prose import Beside, Painted, Prose, Shown
from stepscope.app.tui.widgets.small_charts import chart_lines
from stepscope.ingest.errors import StepscopeError

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
    #summed-up { width: 1fr; height: 100%; }
    #charts { width: 100%; height: 2fr; }
    Chart { height: 1fr; min-height: 3; }
    #tokens { height: 2fr; }
    #summary { width: 100%; height: 3fr; }
    #about { width: 50; height: 100%; border-left: solid $border; }
    .-narrow OverviewPage { layout: vertical; }
    .-narrow #summed-up { width: 100%; height: auto; }
    .-narrow #charts { height: 9; }
    .-narrow #summary { display: none; }
    .-narrow #about { width: 100%; height: 1fr; border-left: none; border-top: solid $border; }
    """

    @dataclass
    class SummedUp(Message):
        """The trace was summed up, or it is said why not."""

        summary: Summary | None
        failure: str = ""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._composition: Composition | None = None
        self._opened: Opened | None = None
        self._summary: OverviewPage.SummedUp | None = None
        self.shows_codes = False

    def compose(self) -> ComposeResult:
        """Lay out the charts and the words."""
        with Vertical(id="summed-up"):
            with Vertical(id="charts"):
                yield Chart("tokens", id="tokens")
                yield Chart("requests", id="requests")
                yield Chart("KV blocks", id="kv")
            yield Prose(id="summary")
        yield Prose(id="about")

    def show(self, opened: Opened) -> None:
        """Show the charts once, the words as they come, and where the cursor is."""
        if self._composition is not opened.models.composition:
            self._draw(opened.models.composition)
        if self._opened is not opened:
            self._opened, self._summary = opened, None
            if opened.live is None:
                self._sum_up(opened)
        self._show_words(opened)
        for chart in self.query(Chart):
            chart.point_at(opened.step_index)

    def _show_words(self, opened: Opened) -> None:
        """Beside the summary where there is room for both, else around it."""
        about, prose = opened.models.about, self.query_one("#about", Prose)
        is_beside = self.query_one("#summary").display
        summed_up = self.query_one("#summary", Prose) if is_beside else prose
        summary = self._summed_up(summed_up.room)
        if is_beside:
            summed_up.show(summary, keep_place=True)
        found = _verdict(opened, with_codes=self.shows_codes)
        if not is_beside:  # what was found comes first, and last which rules say nothing
            silent = [each for each in found if isinstance(each, Fact)]
            found = [*(each for each in found if each not in silent), *summary, *silent]
        words = [*_live(opened), *about.head, Heading("findings"), *found, *about.body]
        prose.show(words, keep_place=True)

    def _summed_up(self, width: int) -> list[Shown]:
        if self._opened is not None and self._opened.live:
            return [Paragraph(STEPS_ARE_NOT_WALKED, Tone.MUTED)]
        if self._opened is None or self._summary is None:
            return [Paragraph("Summing up …", Tone.MUTED)]
        if self._summary.summary is None:
            return [Paragraph(self._summary.failure)]
        start_ns, room = self._opened.view.timeline.bounds[0], column_width(width)
        parts: list[tuple[Block | Painted, ...]] = []
        for part in self._summary.summary.parts:
            charts = (tuple(chart_lines(chart, room, start_ns)) for chart in part.charts)
            parts += [part.blocks, *charts]
        return [Beside(tuple(parts))]

    @work(thread=True)
    def _sum_up(self, opened: Opened) -> None:
        try:
            told = self.SummedUp(summary(opened.trace, opened.blamed(), opened.slo))
        except StepscopeError as error:
            told = self.SummedUp(None, str(error))
        except Exception as error:
            # A traceback over the screen would tell a user nothing.
            what = f"cannot sum the trace up: {type(error).__name__}: {error}"
            told = self.SummedUp(None, f"{what}; report this as a bug")
        self.post_message(told)

    def on_overview_page_summed_up(self, event: SummedUp) -> None:
        """Show what it came to."""
        event.stop()
        self._summary = event
        if self._opened:
            self._show_words(self._opened)

    def on_resize(self) -> None:
        """Draw the charts of the summary at the new width, once it is laid out."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        if self._opened:
            self._show_words(self._opened)

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
        # Of a trace that tells nothing of its batches, or of one alone, there is nothing to draw.
        self.query_one("#charts").display = len(composition) > 1 and any(
            np.isfinite(layer.values).any() for chart in self.query(Chart) for layer in chart.stack
        )

    def show_codes(self, *, shown: bool) -> None:
        """Show the codes of rules that found nothing or could not judge, or how many they are."""
        self.shows_codes = shown
        if self._opened:
            self._show_words(self._opened)

    def action_column(self, by: int) -> None:
        """Move to the step that is drawn a cell to the left or right."""
        chart = self.query_one("#tokens", Chart)
        if chart.num_steps:
            here = chart.cursor or 0
            stride = max(chart.num_steps // max(chart.size.width, 1), 1)
            self._go_to(min(max(here + by * stride, 0), chart.num_steps - 1))

    def action_scroll(self, lines: int) -> None:
        """Scroll the summary, where it stands by itself, else all of the text."""
        beside = self.query_one("#summary")
        shown = beside if beside.display else self.query_one("#about")
        shown.scroll_relative(y=lines, animate=False)

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


def _live(opened: Opened) -> Sequence[Shown]:
    """How the recording goes on that is followed."""
    if opened.live is None:
        return ()
    live = opened.live
    return [*words.blocks(live.status, live.came, opened.view.timeline.bounds[0])]


def _verdict(opened: Opened, *, with_codes: bool) -> Sequence[Shown]:
    """What was found, or why nothing is said of it."""
    if opened.result:
        return verdict(opened.result, with_codes=with_codes)
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
