"""A step in detail: who was in the batch, who was left out and why, and what the engine held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message

from stepscope.app.debug import Position, Session
from stepscope.app.debug.shown.sought_hits import NO_TIMES, Sought
from stepscope.app.debug.shown.value_over_run import ValueOverRun
from stepscope.app.debug.shown.why_blocks import target_of
from stepscope.app.debug.stops.stop import Hit
from stepscope.app.palette import HIT_GLYPH
from stepscope.app.present.where import step_of, when
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.pages.page import Opened, Page, Who
from stepscope.app.tui.pages.step_parts.step_blocks import (
    left_blocks,
    right_blocks,
    step_line,
    took,
)
from stepscope.app.tui.pages.step_parts.step_keys import KEYS
from stepscope.app.tui.pages.step_parts.step_view import Stand, StepView, look_at_step
from stepscope.app.tui.pages.step_parts.value_line import value_blocks
from stepscope.app.tui.screens.ask import AskScreen, what_to_draw, where_to_stop
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.tui.widgets.step_bar import StepBar
from stepscope.app.widths import fit

Query = tuple[Position, str | None]


class StepPage(Page):
    """Shows the position of a session; the session moves, the page follows."""

    ACTIONS = KEYS
    SCOPED_CSS = False
    DEFAULT_CSS = """
    #step-panes { height: 1fr; }
    #step-left { width: 1fr; height: 100%; }
    #step-right { width: 1fr; height: 100%; border-left: solid $border; }
    """
    HITS = frozenset({"step"})

    @dataclass
    class Seen(Message):
        """A position was looked up."""

        view: StepView

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.stand: Stand | None = None
        self.timeline: Timeline | None = None
        self.step: StepView | None = None
        self.request: str | None = None
        self._came_from: list[Position] = []
        self._navigator: Navigator | None = None
        self.sought: Sought | None = None
        self.value: ValueOverRun | None = None
        self._latest: Latest[Query] = Latest(self._look_up)

    @property
    def session(self) -> Session | None:
        """The session of the rank that is stood at; None before there is one."""
        return self.stand.session if self.stand else None

    def compose(self) -> ComposeResult:
        """Lay out the bar and the two panes."""
        yield StepBar(id="step-bar")
        with Horizontal(id="step-panes"):
            yield Prose(id="step-left")
            yield Prose(id="step-right")

    def show(self, opened: Opened) -> None:
        """Move the session to the cursor and look there, or say why there is none to move."""
        self.timeline = opened.view.timeline
        self._navigator = opened.view
        if stand := self.stand_of(opened):
            stand.follow(opened.view.cursor_ns)
            self._look()
        elif text := opened.failed.get("step through"):
            self.query_one(StepBar).number = fit(text, self.size.width or len(text))

    def stand_of(self, opened: Opened) -> Stand | None:
        """Where the page stands in what is opened; None as long as that has no session."""
        session = opened.session
        if session is not (self.stand.first if self.stand else None):
            steps = opened.models.composition
            self.stand = Stand(opened.trace, session, steps) if session else None
        return self.stand

    def asked(self, opened: Opened) -> Who | None:
        """The request that is followed, where there is one."""
        rank = self.session.position.rank if self.session else 0
        return (rank, self.request) if self.request is not None else super().asked(opened)

    def now_ns(self, opened: Opened) -> int:
        """Where the session stands: something happened there, maybe later than the cursor."""
        return self.session.position.ts_ns if self.session else opened.view.cursor_ns

    def _look(self) -> None:
        if self.stand:
            self._latest.ask((self.stand.lend(), self.request))

    @work(thread=True)
    def _look_up(self, query: Query) -> None:
        if self.stand:
            own = self.stand.own_of(query[0])
            self.post_message(self.Seen(look_at_step(own, *query, self.stand.debugger.tables)))
            own.moments.ready()  # the key that goes to the next event waits for nothing

    def on_step_page_seen(self, event: Seen) -> None:
        """Show what was found, unless the session has moved on."""
        event.stop()
        if self._latest.is_wanted():
            self.step = event.view
            self._draw()

    def on_resize(self) -> None:
        """Fit the maps to the new width."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view = self.step
        if view is None or self.timeline is None or self.stand is None:
            return
        bar = self.query_one(StepBar)
        moments, step = view.moments, view.position.step
        index = None if step is None else moments.place_of(step)
        number = step_of(step, index, len(moments.steps))
        bar.number = f"{number}{self.stand.whose} · {when(view.position.ts_ns, self.timeline)}"
        bar.about = self._told_of_hits() + step_line(view) + took(view.detail.step)
        right = self.query_one("#step-right", Prose)
        self.query_one("#step-left", Prose).show(left_blocks(view), keep_place=True)
        drawn = value_blocks(self.value, view.position.ts_ns, right.room) if self.value else []
        right.show([*drawn, *right_blocks(view, right.room)], keep_place=True)

    # ── keys and mouse ───────────────────────────────────────────────────────────────────────

    def action_event(self, by: int) -> None:
        """Go to the next or the previous event."""
        if self.session:
            moved = self.session.next("event") if by > 0 else self.session.back("event")
            if moved:
                self._moved(self.session)

    def action_change(self, by: int) -> None:
        """Go behind the next or the previous change: many may bear one time."""
        if self.session and (self.session.next("seq") if by > 0 else self.session.back("seq")):
            self._moved(self.session)

    def action_prove(self) -> None:
        """Go to the row that proves the first link that is told elsewhere than here."""
        view = self.step
        for link in view.chain.links if view and view.chain else ():
            to = target_of(link.proof)
            if view and to and to.seq != view.position.seq:
                self.action_at_change(to.seq)
                return

    def action_at_change(self, seq: int) -> None:
        """Go behind a change, and remember from where."""
        if self.session:
            before = self.session.position
            if self.session.goto(seq=seq):
                self._came_from.append(before)
                self._moved(self.session)

    def action_return(self) -> None:
        """Go back to where a row was asked for."""
        if self.stand and self._came_from:
            self.stand.debugger.go(self._came_from.pop())
            self._moved(self.stand.session)

    def action_rank(self) -> None:
        """Go over to the next rank."""
        if self.stand and (rank := self.stand.next_rank) is not None:
            self._move(partial(self.stand.debugger.switch, rank), rank)

    def action_break(self) -> None:
        """Ask for a condition to look for; without one nothing is looked for any more."""
        if self.stand:
            before = self.sought.wanted if self.sought else ""
            asked = where_to_stop(self.stand.debugger)
            self.app.push_screen(AskScreen(asked, before), self._look_for)

    def _look_for(self, found: Sought | Literal[""] | None) -> None:
        if found is None or self._navigator is None:
            return
        self.sought = found or None
        self._navigator.hits_ns = found.ts_ns if found else NO_TIMES
        self._draw()

    def action_value(self) -> None:
        """Ask for a value to draw over the run; without one none is drawn any more."""
        if self.stand:
            before = self.value.wanted if self.value else ""
            asked = what_to_draw(self.stand.debugger)
            self.app.push_screen(AskScreen(asked, before), self._draw_value)

    def _draw_value(self, value: ValueOverRun | Literal[""] | None) -> None:
        if value is not None:
            self.value = value or None
            self._draw()

    def action_at_time(self, ts_ns: int) -> None:
        """Go to a time of the run."""
        if self.session and self.session.goto(ts_ns=ts_ns):
            self._moved(self.session)

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
            self._move(partial(self.stand.go_to_hit, self.sought.stop, hit), hit.here.rank)

    def _move(self, move: Callable[[], object], rank: int) -> None:
        """Move in a rank, whose session is made in a thread when it is first come to."""
        if self.stand is None:
            return
        if self.stand.debugger.has_opened(rank):
            move()
            self._moved(self.stand.session)
        else:
            self._open(self.stand, rank, move)

    @work(thread=True, exclusive=True, group="rank")
    def _open(self, stand: Stand, rank: int, move: Callable[[], object]) -> None:
        stand.debugger.session_of(rank)
        self.app.call_from_thread(self._move, move, rank)

    def walk(self, by: int) -> bool:
        """Go to the next or previous step of another rank; False where the rank is the usual."""
        stand = self.stand
        if stand is None or not stand.is_elsewhere:
            return False
        if stand.session.next("step") if by > 0 else stand.session.back("step"):
            self._moved(stand.session)
        return True

    def _told_of_hits(self) -> str:
        if self.sought is None or self.stand is None:
            return ""
        return f"{HIT_GLYPH} {self.sought.told(self.stand.debugger.here)} · "

    def action_edge(self, index: int) -> None:
        """Go to the first or the last step."""
        if self.session and self.session.moments.steps:
            self.session.goto(step=self.session.moments.steps[index])
            self._moved(self.session)

    def _moved(self, session: Session) -> None:
        self.post_message(self.Moved(session.position.ts_ns))

    def action_move(self, by: int) -> None:
        """Follow the next or the previous request."""
        requests = self.step.requests if self.step else []
        if requests:
            here = (
                requests.index(self.request) if self.request in requests else (-1 if by > 0 else 0)
            )
            self.action_follow(min(max(here + by, 0), len(requests) - 1))

    def action_scroll(self, lines: int) -> None:
        """Scroll both panes."""
        for pane in self.query(Prose):
            pane.scroll_relative(y=lines, animate=False)

    def action_follow(self, index: int) -> None:
        """Follow a request from here on, through all steps."""
        if self.step:
            self.request = self.step.requests[index]
            self._look()

    def let_go(self) -> bool:
        """Follow no request; False if none was followed."""
        had, self.request = self.request is not None, None
        if had:
            self._look()
        return had
