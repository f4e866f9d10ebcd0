"""Pages that are tables of what differs: scrolled by keys, followed by clicks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from textual.app import ComposeResult

from stepscope.app.paired import deltas
from stepscope.app.paired.standing import Standing
from stepscope.app.present.blocks import Block
from stepscope.app.tui.actions import SCROLLS, actions
from stepscope.app.tui.pages.page import Opened, Page
from stepscope.app.tui.widgets.prose import Prose


class DeltaPage(Page):
    """A scrolled page of blocks about both traces."""

    ACTIONS = (
        *actions(
            ("scroll(1)", "j,down", "j", "a line down", "scroll"),
            ("scroll(-1)", "k,up", "k", "a line up", "scroll"),
        ),
        *SCROLLS,
    )
    standing: Standing | None = None

    def compose(self) -> ComposeResult:
        """One text."""
        yield Prose()

    def show(self, opened: Opened) -> None:
        """Say what differs, as it is by now."""
        if self.standing:
            told = [*self.told(self.standing, opened)]
            self.query_one(Prose).show(told, keep_place=True)

    @abstractmethod
    def told(self, standing: Standing, opened: Opened) -> Iterable[Block]:
        """What the page says."""

    def action_scroll(self, lines: int) -> None:
        """Scroll the text."""
        self.query_one(Prose).scroll_relative(y=lines, animate=False)


class OverviewPage(DeltaPage):
    """What each came to."""

    def told(self, standing: Standing, opened: Opened) -> Iterable[Block]:
        """Totals, causes, findings by rule, and what each was given."""
        del opened
        return deltas.overview(standing.pair)


class StepPage(DeltaPage):
    """Steps beside each other."""

    def told(self, standing: Standing, opened: Opened) -> Iterable[Block]:
        """Those around the cursor."""
        at = opened.step_index
        steps = opened.models.composition.step
        return deltas.steps(standing.pair, None if at is None else int(steps[at]))


class BlamePage(DeltaPage):
    """Requests beside each other."""

    def told(self, standing: Standing, opened: Opened) -> Iterable[Block]:
        """Latencies, and what changed most."""
        del opened
        return deltas.requests(standing.pair)
