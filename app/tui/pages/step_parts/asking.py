"""What the step page asks about the whole run: where to stop, what to draw, and what if."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Literal

from textual import work
from textual.worker import get_current_worker

from stepscope.app.debug import Position, Session
from stepscope.app.debug.shown.sought_hits import NO_TIMES, Sought
from stepscope.app.debug.shown.value_over_run import ValueOverRun
from stepscope.app.debug.stops.stop import Hit
from stepscope.app.palette import HIT_GLYPH
from stepscope.app.replay.what_if.runs import Run, WhatIfs
from stepscope.app.replay.what_if.told import ended
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.pages.page import Page
from stepscope.app.tui.pages.step_parts.step_view import Stand
from stepscope.app.tui.screens.ask import AskScreen, what_to_draw, where_to_stop
from stepscope.app.tui.screens.what_if import LOOKS_EVERY_S, WhatIfScreen


class AskingPage(Page):
    """A page that stands somewhere in a run, and goes to what was asked about all of it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.stand: Stand | None = None
        self.navigator: Navigator | None = None
        self.sought: Sought | None = None
        self.value: ValueOverRun | None = None
        self.what_ifs: WhatIfs | None = None
        self._came_from: list[Position] = []

    @abstractmethod
    def draw(self) -> None:
        """Draw what is there again, as something beside it has come."""

    def moved(self, session: Session) -> None:
        """Say where a session went."""
        self.post_message(self.Moved(session.position.ts_ns))

    def on_unmount(self) -> None:
        """End what is still being run."""
        if self.what_ifs:
            self.what_ifs.close()

    # ── where to stop, and what to draw ──────────────────────────────────────────────────────

    def action_break(self) -> None:
        """Ask for a condition to look for; without one nothing is looked for any more."""
        if self.stand:
            before = self.sought.wanted if self.sought else ""
            asked = where_to_stop(self.stand.debugger)
            self.app.push_screen(AskScreen(asked, before), self._look_for)

    def _look_for(self, found: Sought | Literal[""] | None) -> None:
        if found is None or self.navigator is None:
            return
        self.sought = found or None
        self.navigator.hits_ns = found.ts_ns if found else NO_TIMES
        self.draw()

    def action_value(self) -> None:
        """Ask for a value to draw over the run; without one none is drawn any more."""
        if self.stand:
            before = self.value.wanted if self.value else ""
            asked = what_to_draw(self.stand.debugger)
            self.app.push_screen(AskScreen(asked, before), self._draw_value)

    def _draw_value(self, value: ValueOverRun | Literal[""] | None) -> None:
        if value is not None:
            self.value = value or None
            self.draw()

    @property
    def told_of_hits(self) -> str:
        """How many hits what is looked for has, and at which one stands."""
        if self.sought is None or self.stand is None:
            return ""
        return f"{HIT_GLYPH} {self.sought.told(self.stand.debugger.here)} · "

    # ── going there ──────────────────────────────────────────────────────────────────────────

    def action_hit(self, by: int) -> None:
        """Go to the next hit of what is looked for, or to the one before."""
        if self.stand is None:
            return
        if self.sought is None:
            self.action_break()
        elif hit := self.sought.next(self.stand.debugger.here, by):
            self._go_to_hit(hit)
        else:
            which = "after" if by > 0 else "before"
            self.notify(f"{self.sought.wanted} has no hit {which} this", markup=False)

    def go_to_hit_at(self, ts_ns: int) -> None:
        """Go to the first hit at a time or after it, of what is looked for."""
        if self.sought and (hit := self.sought.at(ts_ns)):
            self._go_to_hit(hit)

    def _go_to_hit(self, hit: Hit) -> None:
        if self.stand and self.sought:
            go = partial(self.stand.go_to_hit, self.sought.stop, hit)
            self.move_in_rank(go, hit.here.rank)

    def action_at_change(self, seq: int, rank: int | None = None) -> None:
        """Go behind a change, of the rank one stands at by default, and remember from where."""
        if self.stand:
            there = self.stand.debugger.rank if rank is None else rank
            self.move_in_rank(partial(self._go_behind, self.stand, seq, there), there)

    def _go_behind(self, stand: Stand, seq: int, rank: int) -> None:
        before = stand.session.position
        stand.debugger.switch(rank)
        if stand.session.goto(seq=seq):
            self._came_from.append(before)

    def action_return(self) -> None:
        """Go back to where a row was asked for."""
        if self.stand and self._came_from:
            self.stand.debugger.go(self._came_from.pop())
            self.moved(self.stand.session)

    def move_in_rank(self, move: Callable[[], object], rank: int) -> None:
        """Move in a rank, whose session is made in a thread when it is first come to."""
        if self.stand is None:
            return
        if self.stand.debugger.has_opened(rank):
            move()
            self.moved(self.stand.session)
        else:
            self._open(self.stand, rank, move)

    @work(thread=True, exclusive=True, group="rank")
    def _open(self, stand: Stand, rank: int, move: Callable[[], object]) -> None:
        stand.debugger.session_of(rank)
        self.app.call_from_thread(self.move_in_rank, move, rank)

    # ── what if ──────────────────────────────────────────────────────────────────────────────

    def action_what_if(self) -> None:
        """Ask what another variant, setting or a fault less would have changed."""
        if self.stand:
            self.what_ifs = self.what_ifs or WhatIfs(self.stand.debugger.trace)
            self.app.push_screen(WhatIfScreen(self.what_ifs), self._leave_running)

    def _leave_running(self, _closed: None) -> None:
        if self.what_ifs and (run := self.what_ifs.under_way):
            self._await(self.what_ifs, run)

    @work(thread=True, exclusive=True, group="what-if")
    def _await(self, what_ifs: WhatIfs, run: Run) -> None:
        """Say what became of a run that goes on behind the page."""
        worker = get_current_worker()
        while run.is_under_way and not worker.is_cancelled:
            what_ifs.wait(run, LOOKS_EVERY_S)
        if not worker.is_cancelled and not isinstance(self.app.screen, WhatIfScreen):
            self.app.call_from_thread(self.notify, f"{ended(run)}: W shows it", markup=False)
